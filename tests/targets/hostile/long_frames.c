/* SPDX-License-Identifier: MIT */
/*
 * Its only thread sleeps below a function whose call frame information consists of two million instructions that each
 * save the whole state (DW_CFA_remember_state): who interprets it while the thread is stopped takes gigabytes and
 * seconds. It allocates a little now and then.
 */
#include "victim.h"

#include <stdlib.h>
#include <time.h>

void call_below_long_frames(void (*function)(void));

static void work(void)
{
	const struct timespec pause = { .tv_nsec = 20000000 };

	victim_ready();
	while (!victim_done()) {
		free(malloc(1000));
		victim_round();
		nanosleep(&pause, NULL);
	}
}

int main(void)
{
	victim_start("long_frames");
	call_below_long_frames(work);
	return victim_report();
}
