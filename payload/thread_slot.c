/* SPDX-License-Identifier: MIT */
/* The slots of the threads, see thread_slot.h. */
#include "thread_slot.h"

#include "counters.h"
#include "gate.h"
#include "recent_stack.h"

/* A busy word of a hook whose frame a longjmp has left lies below the present stack pointer, and not far. */
#define STALE_FRAME_BYTES (8ull << 20)

struct thread_slot thread_slots[THREAD_SLOT_ARRAY] PAYLOAD_PAGES;
/* For hooks.S, which has no register to spare for an address. */
struct thread_slot *const thread_slots_address = thread_slots;

static uint32_t slot_home(uint64_t tp)
{
	return (uint32_t)((tp ^ tp >> THREAD_SLOT_FOLD) >> THREAD_SLOT_SHIFT) % THREAD_SLOT_COUNT;
}

static int slot_take_idle(struct thread_slot *slot, uint64_t sp)
{
	uint64_t busy = 0;

	return __atomic_compare_exchange_n(&slot->busy, &busy, sp, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* One's own. */
static int slot_take(struct thread_slot *slot, uint64_t sp)
{
	uint64_t busy = __atomic_load_n(&slot->busy, __ATOMIC_RELAXED);

	if (slot_take_idle(slot, sp))
		return 1;
	/* Left by siglongjmp: the stack pointer would be lower if that hook were still running. */
	if (sp > busy && sp - busy < STALE_FRAME_BYTES)
		return __atomic_compare_exchange_n(&slot->busy, &busy, sp, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	return 0;
}

static uint64_t slot_owner(const struct thread_slot *slot)
{
	return __atomic_load_n(&slot->owner, __ATOMIC_RELAXED);
}

/* The slots that a thread may use, in the order in which it tries them. */
static struct thread_slot *slot_candidate(uint64_t tp, uint32_t i)
{
	return i ? &thread_slots[slot_home(tp) + i - 1] : &gates_shared->near;
}

#define CANDIDATES (1u + THREAD_SLOT_PROBES)

/* For a thread that has none. */
static __attribute__((noinline)) struct thread_slot *slot_claim(uint64_t tp, uint64_t sp)
{
	for (uint32_t i = 0; i < CANDIDATES; i++) {
		struct thread_slot *slot = slot_candidate(tp, i);

		/* Who was first in one that nobody owns is not known by the stack: neighbours' stacks are near. */
		if (slot_owner(slot) || !slot_take_idle(slot, sp))
			continue;
		if (!slot_owner(slot))
			return slot;
		thread_slot_release(slot);
	}
	/* All have owners: begin with one that differs from thread to thread, so that two do not steal from each other
	 * for ever. */
	for (uint32_t i = 0; i < THREAD_SLOT_PROBES; i++) {
		struct thread_slot *slot = slot_candidate(tp, 1 + (uint32_t)((tp >> 12) + i) % THREAD_SLOT_PROBES);

		if (slot_take_idle(slot, sp)) {
			__atomic_store_n(&slot->owner, 0, __ATOMIC_RELAXED);
			return slot;
		}
	}
	return NULL;
}

/*
 * The slot of tp, or NULL. Whose the near one is, is asked where nobody writes; what its owner writes is only looked at
 * by a thread that has no other, for what is shown may have got lost.
 */
static struct thread_slot *slot_of(uint64_t tp)
{
	struct thread_slot *near = &gates_shared->near;

	if (__atomic_load_n(&gates_shared->near_owner, __ATOMIC_RELAXED) == tp && slot_owner(near) == tp)
		return near;
	for (uint32_t i = 1; i < CANDIDATES; i++) {
		struct thread_slot *slot = slot_candidate(tp, i);

		if (slot_owner(slot) == tp)
			return slot;
	}
	return slot_owner(near) == tp ? near : NULL;
}

struct thread_slot *thread_slot_acquire(uint64_t tp, uint64_t sp, int *fresh)
{
	struct thread_slot *slot = slot_of(tp);

	*fresh = 0;
	if (slot) {
		if (!slot_take(slot, sp))
			return NULL;
		if (slot_owner(slot) == tp)
			return slot;
		thread_slot_release(slot);
	}
	slot = slot_claim(tp, sp);
	*fresh = slot != NULL;
	return slot;
}

void thread_slot_publish(struct thread_slot *slot, uint64_t tp)
{
	__atomic_store_n(&slot->owner, tp, __ATOMIC_RELAXED);
	thread_slot_show(slot, tp);
}

void thread_slot_show(const struct thread_slot *slot, uint64_t tp)
{
	uint64_t *shown = &gates_shared->near_owner;

	if (slot == &gates_shared->near && __atomic_load_n(shown, __ATOMIC_RELAXED) != tp)
		__atomic_store_n(shown, tp, __ATOMIC_RELAXED);
}

void thread_slot_release(struct thread_slot *slot)
{
	__atomic_store_n(&slot->busy, 0, __ATOMIC_RELEASE);
}

static uint32_t rows_given;   /* (atomic) */
static uint32_t recent_given; /* (atomic) */

void thread_slots_init(void)
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

void thread_slot_equip(struct thread_slot *slot, uint64_t rate_bytes)
{
	uint32_t n;

	if (!slot->counter_row) {
		n = number_take(&rows_given, DUMP_COUNTER_SHARDS);
		slot->counter_row = n < DUMP_COUNTER_SHARDS ? n : 0;
	}
	if (!slot->recent_stack && rate_bytes <= RECENT_RATE_MAX) {
		n = number_take(&recent_given, RECENT_STACKS);
		slot->recent_stack = n < RECENT_STACKS ? n + 1 : 0;
	}
}

struct recent_stack *thread_slot_recent(const struct thread_slot *slot)
{
	uint32_t n = slot->recent_stack;

	if (!n || n > RECENT_STACKS)
		return 0;
	if (!recent_stacks[n - 1].used)
		recent_stack_forget(&recent_stacks[n - 1]);
	return &recent_stacks[n - 1];
}

uint32_t thread_slot_shard(uint64_t tp)
{
	return slot_home(tp) % COUNTER_ROWS_SHARED;
}
