/* SPDX-License-Identifier: MIT */
/*
 * All threads of a target stopped at one moment, for as long as it takes to change a few bytes of code.
 *
 * All that are known are asked at once and stop in parallel; then the list of threads is read again, until it has no
 * new one: a stopped thread makes none. A thread that does not stop (it sleeps uninterruptibly, as the parent of a
 * vfork child does) ends the attempt: the others are resumed, and nothing may be changed. So while all are stopped, no
 * child of vfork runs in this memory either.
 *
 * All are seized before the first is asked: to seize takes longer, and what tells of the end of a thread meanwhile
 * (reap.h) also hears of each stop.
 *
 * A thread that waits for its turn on a processor comes to its stop with that turn; so the stop of the others is as
 * long as the last one needs. STOP_ALL_NS is the limit, a little more where there are many threads.
 */
#ifndef MEMATTACH_STOP_ALL_H
#define MEMATTACH_STOP_ALL_H

#include "target.h"
#include "tracee.h"

#define STOP_ALL_NS 100000000ull
#define STOP_ALL_THREAD_NS 100000ull

struct stop_all {
	struct tracee *list;
	size_t count;
	uint64_t since_ns; /* when the first was asked; 0: none yet */
};

/* 0: all that the target has are stopped. -EAGAIN: one did not come to its stop in time, the text names it; all run
 * again, and *longest_ns, if longer, becomes how long that took. -ESRCH, -EPERM. */
int stop_all(struct stop_all *s, const struct target *target, uint64_t *longest_ns, struct err *e) WARN_UNUSED;
/* Resumes them. *longest_ns, if longer, becomes how long they were stopped. */
void stop_all_end(struct stop_all *s, uint64_t *longest_ns);

#endif
