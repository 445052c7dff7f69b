/* SPDX-License-Identifier: MIT */
/*
 * Visits many threads of a target, each while it is stopped, and each stop as short as possible.
 *
 * A thread stops when its next turn on a processor comes. Where a thousand threads share two processors that takes
 * seconds; asked one after the other they would take a thousand times as long. So several threads are asked to stop in
 * advance, and whichever has stopped is visited at once and resumed. A thread that was asked and has not stopped loses
 * nothing: it waits for its turn, as it would anyway.
 *
 * Only a few are asked at a time, because they may all stop at once, and the last one stays stopped while the others
 * are visited. Those that do not stop within a moment wait for a processor; they will stop one by one, and are not
 * counted among the few any more.
 */
#pragma once

#include <stddef.h>

#include "touch/threads/tracee.h"

struct thread_visits {
	pid_t pid;
	const pid_t *tids;
	size_t count;
	uint64_t deadline_ns;
	uint64_t *longest_ns; /* as in struct tracee */
	/*
	 * Once for each thread. rc 0: t is in a TRACEE_STOP_EVENT or _GROUP, and is resumed when this returns. Else
	 * t is NULL and e says why: -ESRCH it has ended, -ETIMEDOUT it did not stop until the deadline, -EPERM,
	 * -EAGAIN.
	 */
	void (*visit)(void *context, pid_t tid, struct tracee *t, int rc, const struct err *e);
	void *context;
};

/* 0 when each thread was visited or has its reason. */
int visit_threads(const struct thread_visits *c, struct err *e) WARN_UNUSED;
