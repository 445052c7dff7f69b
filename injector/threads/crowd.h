/* SPDX-License-Identifier: MIT */
/*
 * Many threads of a target, each looked at while it stands in a stop, for as short as possible.
 *
 * A thread that runs comes to its stop when its turn on a processor comes. Where a thousand threads share two
 * processors that takes seconds; asked one after the other they would take a thousand times that. So threads are asked
 * ahead, and whichever stops is visited at once and goes on. A thread that was asked but has not stopped loses nothing:
 * it only waits for its turn, as it would anyway.
 *
 * A few are asked at a time, since they may all stop at once and the last one is held while the others are visited.
 * Those that do not stop within a moment wait for a processor and come one by one: they are no longer counted among the
 * few.
 */
#ifndef MEMATTACH_CROWD_H
#define MEMATTACH_CROWD_H

#include <stddef.h>

#include "tracee.h"

struct crowd {
	pid_t pid;
	const pid_t *tids;
	size_t count;
	uint64_t deadline_ns;
	uint64_t *longest_ns; /* as in struct tracee */
	/*
	 * Once for each thread. rc 0: t stands in a TRACEE_STOP_EVENT or _GROUP, and is let go when this returns. Else
	 * t is NULL and e says why: -ESRCH it has ended, -ETIMEDOUT it did not stop until the deadline, -EPERM,
	 * -EAGAIN.
	 */
	void (*visit)(void *context, pid_t tid, struct tracee *t, int rc, const struct err *e);
	void *context;
};

/* 0 when each thread was visited or has its reason. */
int crowd_visit(const struct crowd *c, struct err *e) WARN_UNUSED;

#endif
