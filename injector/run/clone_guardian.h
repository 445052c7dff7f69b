/* SPDX-License-Identifier: MIT */
/*
 * A process of memattach that outlives it: when memattach dies in the middle of a census by clone, it has the zombie
 * of the clone collected, which dies with memattach, and clears the padding (remote.h). It does nothing else, and holds
 * nothing of the process before. If both are killed, the next attach or --detach does that.
 */
#pragma once

#include "session/session.h"

struct clone_guardian {
	pid_t child; /* 0: there is none */
	int fd;
};

#define CLONE_GUARDIAN_NONE                                                                                            \
	{                                                                                                              \
		.fd = -1                                                                                               \
	}

/* Before a clone is made. */
int clone_guardian_start(struct clone_guardian *g, const struct session_options *o, struct err *e) WARN_UNUSED;
/* left: a clone could not be collected: it goes on trying for a while. */
void clone_guardian_end(struct clone_guardian *g, bool left);
