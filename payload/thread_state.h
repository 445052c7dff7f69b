/* SPDX-License-Identifier: MIT */
/*
 * The state of each thread, found without thread-local storage.
 *
 * - An array of thread states, two cache lines each. A thread finds its own by a hash of the thread pointer: in its
 *   home place, or one of the few after it.
 * - One more, the near thread state, has a fixed place in the data of the trampolines, which use it without searching.
 *   It belongs to the first thread that allocates. All threads compare its owner, so that word exists a second time
 *   (trampolines_shared.near_owner), in a line that nobody writes: threads that read what another one writes all the
 *   time take the line from each other, which cost two busy threads two thirds of their speed.
 *
 * The words:
 *
 * - owner is the thread pointer, 0 if the state is free. hooks.S and trampolines.S compare it and subtract from
 *   `remaining` without a lock.
 * - busy is 0, or the stack pointer at entry of the hook that works with the other words. The owner takes it by
 *   compare-and-swap. So a signal handler that interrupts a hook, or another process that uses the same thread pointer,
 *   finds it taken.
 * - remaining is the number of bytes until the next sample; below 0 the slow path is due.
 *
 * When all states that a thread may use have other owners, it takes one of them. Its owner may have ended; one that
 * lives notices by the comparison, and finds itself another. That is sound because the sampling process has no memory:
 * any state may be given a newly drawn interval at any time. All that can get lost is what the old owner subtracts at
 * the same instant.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hook_call.h"
#include "payload.h"

struct thread_state {
	uint64_t owner;
	uint64_t remaining;
	uint64_t random;
	uint64_t busy;
	uint32_t rate_bytes;       /* that `remaining` was drawn with */
	uint32_t history_sequence; /* low half of the sequence of the history block that this thread fills */
	uint32_t history_page;     /* offset of that block in the dump / 4096, 0: none */
	uint32_t counter_row;      /* that no other thread state adds to, 0: none */
	uint32_t recent_stack;     /* number of its recent stack + 1, 0: none */
	uint32_t reserved_;
	uint64_t samples; /* taken where all are: which of them are timed */
	/* Of the hook that runs a TRAMPOLINE_OUTER function: its stack pointer at entry, 0 none; what that points to.
	 */
	uint64_t outer_sp;
	uint64_t outer_return;
	uint64_t reserved[6];
};

_Static_assert(sizeof(struct thread_state) == THREAD_STATE_BYTES, "thread_state");
_Static_assert(offsetof(struct thread_state, owner) == THREAD_STATE_OWNER, "owner");
_Static_assert(offsetof(struct thread_state, remaining) == THREAD_STATE_REMAINING, "remaining");
_Static_assert(offsetof(struct thread_state, outer_sp) == THREAD_STATE_OUTER_SP, "outer_sp");
_Static_assert(offsetof(struct thread_state, outer_return) == THREAD_STATE_OUTER_RETURN, "outer_return");

extern struct thread_state thread_states[THREAD_STATE_ARRAY] HIDDEN;
extern struct thread_state *const thread_states_address HIDDEN;

/* The thread state of tp, taken for the hook that was entered with stack pointer sp; *fresh says that it is newly tp's,
 * with nothing in it. NULL: it is taken already, or there is none. */
struct thread_state *thread_state_acquire(uint64_t tp, uint64_t sp, int *fresh);
/* The thread state of tp, not taken; NULL: it has none. */
struct thread_state *thread_state_find(uint64_t tp);
/* Makes *thread, acquired and fresh, visible to the fast path of tp. */
void thread_state_publish(struct thread_state *thread, uint64_t tp);
/* For the near thread state: what the fast path compares names tp again, which owns *thread, if it did not (a hook was
 * left by siglongjmp). */
void thread_state_show(const struct thread_state *thread, uint64_t tp);
void thread_state_release(struct thread_state *thread);
/* Gives *thread, which is acquired, what is not for all: a row of counters, and a recent stack if the rate is small. */
void thread_state_equip(struct thread_state *thread, uint64_t rate_bytes);
/* Nobody has a row or a recent stack. */
void thread_states_init(void);
/* The recent stack of the thread state, or NULL. */
struct recent_stack *thread_state_recent(const struct thread_state *thread);
/* Which of the rows of counters that are for all the thread adds to. */
uint32_t thread_state_shard(uint64_t tp);
