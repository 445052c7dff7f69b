/* SPDX-License-Identifier: MIT */
/*
 * The proof that no thread of the target is inside code that is about to be unmapped.
 *
 * Beforehand no thread can enter any more: the GOT entries are restored and the trampolines lead to the originals. So
 * each thread is examined once and for microseconds, when it comes to a stop (visit_threads.h), until it was seen
 * outside: no register holds an address of the payload's code, no walked frame returns into it, and if the walk is not
 * by unwind information to the end of the stack, no hook has its liveness marker there (HOOK_LIVE_MAGIC) and no signal
 * interrupted the payload. Words that hold addresses of its code do not count: they may be what an ended hook left in a
 * frame that uses only a part of its memory, and a thread that sleeps keeps them for ever. Addresses of the payload's
 * data do not count: only its code follows them, and they stay in registers that the program does not happen to use. A
 * thread that was seen outside stays outside; threads that are born meanwhile are looked at too.
 *
 * A thread that sleeps in a call that a stop would harm (blocked_call.h) is not stopped. It is examined from outside,
 * by the program counter and stack pointer that /proc tells, and by its stack; that it has slept meanwhile shows the
 * count of its switches.
 *
 * Trampolines and detours hold no return addresses, and nobody keeps theirs: only a program counter counts, of a thread
 * or of what its signal handler returns to. (The payload has addresses of detours in registers when it calls an
 * original, and what is left of those means nothing.)
 */
#pragma once

#include "prove/stack_search.h"
#include "prove/stack_walk.h"
#include "process/target.h"
#include "prove/thread_stack.h"

struct quiesce_stacks {
	struct stack_position *list;
	size_t count;
};

struct quiesce {
	const struct target *target;
	const struct target_memory *memory;
	struct stack_walk *walk;
	struct address_range code;           /* of the payload */
	const struct address_range *detours; /* and the code of the trampolines */
	unsigned detour_count;
	uint64_t *longest_ns;
	/* Where each thread's stack pointer was when it was seen outside; in a signal handler, also those of what it
	 * has interrupted. May be NULL. */
	struct quiesce_stacks *stacks;
};

/* 0: proven. -EBUSY: a thread is inside (named) until the deadline, to which a turn on a processor is added for each
 * thread. -ESRCH: the target has ended. */
int quiesce_wait(const struct quiesce *q, uint64_t deadline_ns, struct err *e) WARN_UNUSED;
