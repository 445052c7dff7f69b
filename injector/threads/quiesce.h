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
 * The trampolines are another matter: the program may have copied their addresses, and a thread that calls through the
 * copy in a loop has it in a register for ever. So an address of a trampoline in a register or on a stack is waited for
 * only a while; then the thread counts as outside, and the trampolines have to stay. Detours are reached by jumps in
 * code that are gone: only a program counter counts, of a thread or of what its signal handler returns to. (The payload
 * has their addresses in registers when it calls an original, and what is left of those means nothing.)
 */
#ifndef MEMATTACH_QUIESCE_H
#define MEMATTACH_QUIESCE_H

#include "escape.h"
#include "stack_walk.h"
#include "stack_words.h"
#include "target.h"

struct quiesce_range {
	uint64_t start;
	uint64_t end;
};

struct quiesce_stacks {
	struct stack_position *list;
	size_t count;
};

struct quiesce_writer {
	int (*write_zero)(void *context, uint64_t where); /* of eight bytes; -errno */
	void *context;
};

struct quiesce {
	const struct target *target;
	const struct target_memory *memory;
	struct stack_walk *walk;
	struct quiesce_range code;           /* of the payload */
	struct quiesce_range trampolines;    /* their code; empty: there are none */
	const struct quiesce_range *detours; /* a thread may be in one, and nobody keeps their addresses */
	unsigned detour_count;
	bool *trampolines_held; /* out: a thread holds the address of a trampoline */
	uint64_t *longest_ns;
	/* Where each thread's stack pointer was when it was seen outside; in a signal handler, also those of what it
	 * has interrupted. May be NULL. */
	struct quiesce_stacks *stacks;
};

/* Does a word of the live stack above sp hold an address of the range? For threads whose stack cannot be walked to its
 * end. */
bool quiesce_stack_holds(const struct target_memory *memory, uint64_t sp, const struct quiesce_range *ranges,
                         unsigned range_count);

/* Is a hook alive on the stack above sp, or was code in one of the ranges interrupted by a signal whose handler runs?
 * For the same threads. */
bool quiesce_stack_in_hook(const struct target_memory *memory, uint64_t sp, const struct quiesce_range *ranges,
                           unsigned range_count);

/* 0: proven. -EBUSY: a thread is inside (named) until the deadline, to which a turn on a processor is added for each
 * thread. -ESRCH: the target has ended. */
int quiesce_wait(const struct quiesce *q, uint64_t deadline_ns, struct err *e) WARN_UNUSED;
/*
 * Stops the thread, and takes the words out of the list that lie below all that it has on its stack, also below what
 * its signal handlers have interrupted. They are dead: a signal could overwrite them at any time. Those that have their
 * value still become 0, so that they are met no more. 0: what is left in the list may be alive. -ESRCH: the thread has
 * ended. Other errors: it did not stop until the deadline, is inside, has the address of a trampoline in a register, or
 * cannot be walked to where it began. Then all are left. Of q stacks and trampolines_held are not used.
 */
int quiesce_clear(const struct quiesce *q, struct stack_words *words, uint64_t deadline_ns,
                  const struct quiesce_writer *writer, struct err *e) WARN_UNUSED;

#endif
