/* SPDX-License-Identifier: MIT */
/*
 * Finds a thread of the target that can be borrowed now, stops it at a safe point and puts it into the stub (remote.h).
 * Threads are tried one at a time, each by a tracer of its own; a thread that is not at a safe point goes on at once.
 */
#pragma once

#include "touch/remote/cave.h"
#include "maps/maps.h"
#include "touch/remote/remote.h"
#include "prove/safe_point.h"
#include "process/target.h"

struct borrower {
	const struct target *target;
	const struct target_memory *memory;
	const struct target_writer *writer;
	const struct safe_points *points;
	struct stub_place cave;
	uint64_t search_ns;   /* how long to look for a safe point */
	uint64_t call_ns;     /* how long one remote call may take */
	uint64_t extra_bytes; /* data room in the work area after its stack */
	uint64_t *longest_ns; /* longest time that any one thread was stopped */
	bool patient;         /* only the second signal to memattach ends the search, not the first */
};

/* Called when the thread is in the stub at its first checkpoint: goes on with remote_call, ends with remote_leave and
 * tracee_detach, or remote_abandon. By another thread of memattach (tracer.h). */
typedef int (*borrow_fn)(void *context, struct remote *r, struct tracee *t, struct err *e);

/*
 * Returns what use has returned. If it was not called: -ETIMEDOUT: no thread at a safe point in time, the text says
 * what each of them was doing; -EPERM: seccomp would kill the calls, or ptrace is not permitted; -ESRCH: the target has
 * ended; -EINTR: memattach was asked to end. Then nothing is changed.
 */
int borrow_thread(const struct borrower *b, borrow_fn use, void *context, struct err *e) WARN_UNUSED;

/* How well a thread suits, as far as /proc tells: 0 best, -1 not at all. */
int borrow_rank(const struct thread_info *thread);
/* It blocks in a call that returns EINTR once if memattach is killed while it is stopped. */
bool borrow_restarts_badly(const struct thread_info *thread);

/* Waits until no thread runs the stub of an earlier memattach in the cave any more. -ETIMEDOUT: one does, for
 * search_ns. */
int borrow_wait_cave(const struct borrower *b, struct err *e) WARN_UNUSED;
/* Clears the cave of an earlier memattach's stub, when its thread has left it. -ETIMEDOUT: it has not within search_ns.
 */
int borrow_erase_cave(const struct borrower *b, struct err *e) WARN_UNUSED;
