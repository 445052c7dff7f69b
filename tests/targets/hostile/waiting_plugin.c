/* SPDX-License-Identifier: MIT */
/* A library whose constructor waits for another thread, while the loader's lock is held. */
#include "loader_guest.h"

static volatile int *volatile seen;
static volatile int state;

static void set_up(void *argument)
{
	seen = argument;
	*seen = 1;
}

__attribute__((constructor)) static void start(void)
{
	guest_call(set_up, (void *)&state);
}
