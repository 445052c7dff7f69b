/* SPDX-License-Identifier: MIT */
/* The thread states of the threads, see thread_state.h. */
#include "thread_state.h"

#include "tables/counters.h"
#include "trampoline_setup.h"
#include "walk/recent_stack.h"

/* A busy word of a hook whose frame a longjmp has left lies below the present stack pointer, and not far. */
#define STALE_FRAME_BYTES (8ull << 20)

struct thread_state thread_states[THREAD_STATE_ARRAY] WIPED_PAGES;
/* For hooks.S, which has no register to spare for an address. */
struct thread_state *const thread_states_address = thread_states;

static uint32_t state_home(uint64_t tp)
{
	return (uint32_t)((tp ^ tp >> THREAD_STATE_FOLD) >> THREAD_STATE_SHIFT) % THREAD_STATE_COUNT;
}

static int state_take_idle(struct thread_state *thread, uint64_t sp)
{
	uint64_t busy = 0;

	return __atomic_compare_exchange_n(&thread->busy, &busy, sp, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* One's own. */
static int state_take(struct thread_state *thread, uint64_t sp)
{
	uint64_t busy = __atomic_load_n(&thread->busy, __ATOMIC_RELAXED);

	if (state_take_idle(thread, sp))
		return 1;
	/* Left by siglongjmp: the stack pointer would be lower if that hook were still running. */
	if (sp > busy && sp - busy < STALE_FRAME_BYTES)
		return __atomic_compare_exchange_n(&thread->busy, &busy, sp, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	return 0;
}

static uint64_t state_owner(const struct thread_state *thread)
{
	return __atomic_load_n(&thread->owner, __ATOMIC_RELAXED);
}

/* The thread states that a thread may use, in the order in which it tries them. */
static struct thread_state *state_candidate(uint64_t tp, uint32_t i)
{
	return i ? &thread_states[state_home(tp) + i - 1] : &trampolines_shared->near;
}

#define CANDIDATES (1u + THREAD_STATE_PROBES)

/* For a thread that has none. */
static __attribute__((noinline)) struct thread_state *state_claim(uint64_t tp, uint64_t sp)
{
	for (uint32_t i = 0; i < CANDIDATES; i++) {
		struct thread_state *thread = state_candidate(tp, i);

		/* Who was first in one that nobody owns is not known by the stack: neighbours' stacks are near. */
		if (state_owner(thread) || !state_take_idle(thread, sp))
			continue;
		if (!state_owner(thread))
			return thread;
		thread_state_release(thread);
	}
	/* All have owners: begin with one that differs from thread to thread, so that two do not steal from each other
	 * for ever. */
	for (uint32_t i = 0; i < THREAD_STATE_PROBES; i++) {
		struct thread_state *thread = state_candidate(tp, 1 + (uint32_t)((tp >> 12) + i) % THREAD_STATE_PROBES);

		if (state_take_idle(thread, sp)) {
			__atomic_store_n(&thread->owner, 0, __ATOMIC_RELAXED);
			return thread;
		}
	}
	return NULL;
}

/*
 * Whose the near one is, is asked where nobody writes; what its owner writes is only
 * looked at by a thread that has no other, for what is shown may have got lost.
 */
struct thread_state *thread_state_find(uint64_t tp)
{
	struct thread_state *near = &trampolines_shared->near;

	if (__atomic_load_n(&trampolines_shared->near_owner, __ATOMIC_RELAXED) == tp && state_owner(near) == tp)
		return near;
	for (uint32_t i = 1; i < CANDIDATES; i++) {
		struct thread_state *thread = state_candidate(tp, i);

		if (state_owner(thread) == tp)
			return thread;
	}
	return state_owner(near) == tp ? near : NULL;
}

struct thread_state *thread_state_acquire(uint64_t tp, uint64_t sp, int *fresh)
{
	struct thread_state *thread = thread_state_find(tp);

	*fresh = 0;
	if (thread) {
		if (!state_take(thread, sp))
			return NULL;
		if (state_owner(thread) == tp)
			return thread;
		thread_state_release(thread);
	}
	thread = state_claim(tp, sp);
	*fresh = thread != NULL;
	return thread;
}

void thread_state_publish(struct thread_state *thread, uint64_t tp)
{
	__atomic_store_n(&thread->owner, tp, __ATOMIC_RELAXED);
	thread_state_show(thread, tp);
}

void thread_state_show(const struct thread_state *thread, uint64_t tp)
{
	uint64_t *shown = &trampolines_shared->near_owner;

	if (thread == &trampolines_shared->near && __atomic_load_n(shown, __ATOMIC_RELAXED) != tp)
		__atomic_store_n(shown, tp, __ATOMIC_RELAXED);
}

void thread_state_release(struct thread_state *thread)
{
	__atomic_store_n(&thread->busy, 0, __ATOMIC_RELEASE);
}

static uint32_t rows_given;   /* (atomic) */
static uint32_t recent_given; /* (atomic) */

void thread_states_init(void)
{
	rows_given = COUNTER_ROWS_SHARED;
	recent_given = 0;
}

/* The next number below limit, or limit. */
static uint32_t number_take(uint32_t *given, uint32_t limit)
{
	uint32_t n = __atomic_load_n(given, __ATOMIC_RELAXED);

	while (n < limit && !__atomic_compare_exchange_n(given, &n, n + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return n;
}

void thread_state_equip(struct thread_state *thread, uint64_t rate_bytes)
{
	uint32_t n;

	if (!thread->counter_row) {
		n = number_take(&rows_given, DUMP_COUNTER_SHARDS);
		thread->counter_row = n < DUMP_COUNTER_SHARDS ? n : 0;
	}
	if (!thread->recent_stack && rate_bytes <= RECENT_RATE_MAX) {
		n = number_take(&recent_given, RECENT_STACKS);
		thread->recent_stack = n < RECENT_STACKS ? n + 1 : 0;
	}
}

struct recent_stack *thread_state_recent(const struct thread_state *thread)
{
	uint32_t n = thread->recent_stack;

	if (!n || n > RECENT_STACKS)
		return 0;
	if (!recent_stacks[n - 1].used)
		recent_stack_forget(&recent_stacks[n - 1]);
	return &recent_stacks[n - 1];
}

uint32_t thread_state_shard(uint64_t tp)
{
	return state_home(tp) % COUNTER_ROWS_SHARED;
}
