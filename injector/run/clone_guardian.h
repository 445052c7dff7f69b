/* SPDX-License-Identifier: MIT */
/*
 * A process of memattach that outlives it: when memattach dies in the middle of a census by clone, it has the zombie
 * of the clone collected, which dies with memattach, and clears the padding (remote.h). If both are killed, the next
 * attach or --detach does that. When memattach is stopped, as by Ctrl-Z, for a second or two, it ends the clone, which
 * would keep memory and have nobody who looks how much is left. It holds nothing of the process before.
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
