/* SPDX-License-Identifier: MIT */
/*
 * The state of each thread without TLS: slots of two cache lines found by a hash of the thread pointer, in the home
 * slot or one of the few behind it. One slot more, the near slot, stands at a fixed place in the data of the gates,
 * which charge it themselves: it belongs to the first thread that comes. All threads ask whose it is, so that word
 * stands a second time, apart from what its owner writes (gates_shared.near_owner): threads that read what another one
 * writes all the time take the line from each other, which cost two busy threads two thirds of their speed.
 *
 * - owner is the thread pointer, 0 if the slot is free. hooks.S and gates.S compare it and charge `remaining` without a
 *   lock.
 * - busy is 0, or the stack pointer at entry of the hook that works with the rest of the slot. Its owner takes it by
 *   compare-and-swap, so a signal handler that interrupts a hook, or another thread that shares the thread pointer,
 *   finds it taken.
 * - remaining is what is left of the distance to the next sample; below 0 the slow path is due.
 *
 * When all slots that a thread may use have other owners, it takes one of them: its owner may be dead, and a living
 * owner notices by the comparison, and finds itself another. That is sound because the process of samples has no
 * memory: a slot can be given a newly drawn distance at any time. The one thing that can get lost is a charge of the
 * old owner at the same instant.
 */
#ifndef MEMATTACH_PAYLOAD_THREAD_SLOT_H
#define MEMATTACH_PAYLOAD_THREAD_SLOT_H

#include <stddef.h>
#include <stdint.h>

#include "hook_call.h"
#include "payload.h"

struct thread_slot {
	uint64_t owner;
	uint64_t remaining;
	uint64_t random;
	uint64_t busy;
	uint32_t rate_bytes;       /* that `remaining` was drawn with */
	uint32_t history_sequence; /* low half of the sequence of the history block that this thread fills */
	uint32_t history_page;     /* offset of that block in the dump / 4096, 0: none */
	uint32_t counter_row;      /* that no other slot adds to, 0: none */
	uint32_t recent_stack;     /* number of its recent stack + 1, 0: none */
	uint32_t reserved_;
	uint64_t samples; /* taken where all are: which of them are timed */
	uint64_t reserved[8];
};

_Static_assert(sizeof(struct thread_slot) == THREAD_SLOT_BYTES, "thread_slot");
_Static_assert(offsetof(struct thread_slot, owner) == THREAD_SLOT_OWNER, "owner");
_Static_assert(offsetof(struct thread_slot, remaining) == THREAD_SLOT_REMAINING, "remaining");

extern struct thread_slot thread_slots[THREAD_SLOT_ARRAY] HIDDEN;
extern struct thread_slot *const thread_slots_address HIDDEN;

/* The slot of tp, taken for the hook that was entered with stack pointer sp; *fresh says that it is newly tp's, with
 * nothing in it. NULL: it is taken already, or there is none. */
struct thread_slot *thread_slot_acquire(uint64_t tp, uint64_t sp, int *fresh);
/* Makes *slot, acquired and fresh, visible to the fast path of tp. */
void thread_slot_publish(struct thread_slot *slot, uint64_t tp);
/* For the near slot: what the fast path compares names tp again, which owns *slot, if it did not (a hook was left by
 * siglongjmp). */
void thread_slot_show(const struct thread_slot *slot, uint64_t tp);
void thread_slot_release(struct thread_slot *slot);
/* Gives *slot, which is acquired, what is not for all: a row of counters, and a recent stack if the rate is small. */
void thread_slot_equip(struct thread_slot *slot, uint64_t rate_bytes);
/* Nobody has a row or a recent stack. */
void thread_slots_init(void);
/* The recent stack of the slot, or NULL. */
struct recent_stack *thread_slot_recent(const struct thread_slot *slot);
/* Which of the rows of counters that are for all the thread adds to. */
uint32_t thread_slot_shard(uint64_t tp);

#endif
