/* SPDX-License-Identifier: MIT */
/*
 * The countdown to the next sample.
 *
 * The fast path has subtracted the size from slot.remaining and got a borrow, or has found no slot. Either the
 * allocation holds the sampled byte, and a new distance is drawn, or it is decided here with a new slot.
 *
 * The rate may change at any instant: memattach stores another one in the dump's header, and each thread draws its next
 * distance with what it finds there. This biases nothing, however the rate is chosen from what was seen so far. The
 * rate that a distance was drawn with is kept with it and is the one that its sample is weighted with. At every byte of
 * the distance the chance that the next S bytes hold its end is 1 - exp(-S/R) with that R, whatever has passed before,
 * because the exponential distribution has no memory; so given the past, each allocation counts S on average, sampled
 * or not, and sums of such terms have no bias (a martingale). What must not happen is that a distance is drawn with one
 * rate and recorded with another, or that a rate depends on how far away the next sample is. A thread with a long
 * distance at a large rate goes on with it: the change comes late there, and that is all.
 *
 * The file may be written by others: what stands in the header is taken only if it is no less than the session's own
 * rate, which is kept in private memory, so nobody can make the target slower by it than it was asked for.
 *
 * A thread that comes with a charged slot which is no longer its own draws anew, which is right for the same reason.
 */
#include "sampler.h"

#include "arch.h"
#include "counters.h"
#include "exponential.h"
#include "known_stack.h"
#include "payload.h"
#include "thread_slot.h"

static uint64_t sampler_threads; /* (atomic) slots ever seeded: each gets its own stream */

void sampler_init(void)
{
	__atomic_store_n(&sampler_threads, 0, __ATOMIC_RELAXED);
	thread_slots_init();
}

static uint64_t thread_seed(void)
{
	uint64_t state =
		payload.seed + 0xD1B54A32D192ED03ull * __atomic_fetch_add(&sampler_threads, 1, __ATOMIC_RELAXED);

	return random_next(&state);
}

/* The fast path loads and stores these words without a lock, in the same thread. */
static uint64_t remaining_load(const struct thread_slot *slot)
{
	return __atomic_load_n(&slot->remaining, __ATOMIC_RELAXED);
}

static void remaining_store(struct thread_slot *slot, uint64_t value)
{
	__atomic_store_n(&slot->remaining, value, __ATOMIC_RELAXED);
}

static uint32_t rate_now(void)
{
	uint64_t least = payload.rate_bytes;
	uint64_t wanted = __atomic_load_n(&payload.dump->rate_bytes, __ATOMIC_RELAXED); /* only its value matters */

	return (uint32_t)(wanted <= least || wanted > UINT32_MAX ? least : wanted);
}

static void slot_draw(struct thread_slot *slot, uint32_t rate)
{
	slot->rate_bytes = rate;
	remaining_store(slot, exponential_draw(&slot->random, rate));
}

static void slot_begin(struct thread_slot *slot, uint32_t rate)
{
	slot->random = thread_seed();
	slot->history_page = 0;
	thread_slot_equip(slot, rate);
	slot_draw(slot, rate);
}

/* Nothing could be drawn: the charge is undone, so that whoever works with the slot finds what it left. */
static uint32_t charge_lost(const struct hook_call *call, uint64_t tp, uint64_t charge)
{
	if (call->slot) {
		struct counter_row counters = counter_row(0, tp);

		__atomic_fetch_add(&call->slot->remaining, charge, __ATOMIC_RELAXED);
		counter_add(&counters, DUMP_COUNTER_lost_busy, 1);
	}
	return 0;
}

uint32_t sampler_charge(const struct hook_call *call, uint64_t size)
{
	uint64_t charge = size ? size : 1;
	uint64_t tp = arch_thread_pointer();
	uint32_t rate = rate_now(), sampled = 0;
	struct thread_slot *slot = call->slot;
	uint64_t before;
	int fresh, charged;

	/* All distances are 0, whoever interrupts whom. */
	if (rate == 1 && slot && slot->rate_bytes == 1) {
		remaining_store(slot, 0);
		return 1;
	}
	slot = thread_slot_acquire(tp, call->sp, &fresh);
	if (!slot)
		return charge_lost(call, tp, charge);
	charged = slot == call->slot && !fresh;
	if (fresh) {
		known_stacks_learn(tp);
		slot_begin(slot, rate);
		thread_slot_publish(slot, tp);
	} else if (!call->slot) {
		thread_slot_show(slot, tp);
	}
	before = remaining_load(slot);
	if (charged)
		before += charge;
	/* Below 0: it was charged between the gate and here, by a signal handler, or some time by a call that never
	 * came here. */
	if (before < charge || before >> 63) {
		sampled = slot->rate_bytes;
		slot_draw(slot, rate);
	} else {
		remaining_store(slot, before - charge);
	}
	thread_slot_release(slot);
	return sampled;
}
