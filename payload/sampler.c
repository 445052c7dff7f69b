/* SPDX-License-Identifier: MIT */
/*
 * The countdown to the next sample.
 *
 * Here come calls for which the fast path found fewer bytes left until the next sample than the allocation has, or no
 * thread state. In the first case the allocation is sampled, and a new interval is drawn; in the second it is decided
 * here, with a new thread state.
 *
 * The rate may change at any instant: memattach stores another one in the dump's header, and each thread draws its next
 * interval with what it finds there. This biases nothing, however the rate is chosen from what was seen so far. The
 * rate that an interval was drawn with is kept with it and is the one that its sample is weighted with. At every byte
 * of the interval the probability that the next S bytes hold its end is 1 - exp(-S/R) with that R, whatever has passed
 * before, because the exponential distribution has no memory; so given the past, each allocation counts S on average,
 * sampled or not, and sums of such terms have no bias (a martingale). What must not happen is that an interval is drawn
 * with one rate and recorded with another, or that a rate depends on how far away the next sample is. A thread with a
 * long interval at a large rate goes on with it: the change comes late there, and that is all.
 *
 * The file may be written by others: what is in the header is taken only if it is no less than the session's own rate,
 * which is kept in private memory, so nobody can make the target slower by it than it was asked for.
 *
 * A thread that comes with a charged thread state which is no longer its own draws anew, which is right for the same
 * reason.
 */
#include "sampler.h"

#include "arch/machine.h"
#include "tables/counters.h"
#include "exponential.h"
#include "walk/known_stack.h"
#include "payload.h"
#include "thread_state.h"

static uint64_t sampler_threads; /* (atomic) thread states ever seeded: each gets its own stream */

void sampler_init(void)
{
	__atomic_store_n(&sampler_threads, 0, __ATOMIC_RELAXED);
	thread_states_init();
}

static uint64_t thread_seed(void)
{
	uint64_t state =
		payload.seed + 0xD1B54A32D192ED03ull * __atomic_fetch_add(&sampler_threads, 1, __ATOMIC_RELAXED);

	return exponential_random(&state);
}

/* The fast path loads and stores these words without a lock, in the same thread. */
static uint64_t remaining_load(const struct thread_state *thread)
{
	return __atomic_load_n(&thread->remaining, __ATOMIC_RELAXED);
}

static void remaining_store(struct thread_state *thread, uint64_t value)
{
	__atomic_store_n(&thread->remaining, value, __ATOMIC_RELAXED);
}

static uint32_t rate_now(void)
{
	uint64_t least = payload.rate_bytes;
	uint64_t wanted = __atomic_load_n(&payload.dump->rate_bytes, __ATOMIC_RELAXED); /* only its value matters */

	return (uint32_t)(wanted <= least || wanted > UINT32_MAX ? least : wanted);
}

static void state_draw(struct thread_state *thread, uint32_t rate)
{
	thread->rate_bytes = rate;
	remaining_store(thread, exponential_draw(&thread->random, rate));
}

static void state_begin(struct thread_state *thread, uint32_t rate)
{
	thread->random = thread_seed();
	thread->history_page = 0;
	thread_state_equip(thread, rate);
	state_draw(thread, rate);
}

/*
 * No thread state can be worked with: the call is not sampled, and counted if it should have been. Random numbers are
 * of a stream of their own, since those of the thread state are somebody's at work.
 *
 * A charged state keeps no end that lies within these bytes: the next call would be sampled in place of this one, and
 * counted as well. If it is below 0 without this charge, who works with it has charged it, and draws.
 */
static uint32_t charge_lost(const struct hook_call *call, uint64_t tp, uint64_t charge, uint32_t rate)
{
	struct counter_row counters = counter_row(0, tp);
	struct thread_state *thread = call->thread;
	uint64_t random = thread_seed();

	if (thread) {
		uint64_t before = __atomic_add_fetch(&thread->remaining, charge, __ATOMIC_RELAXED);

		if (!(before >> 63))
			remaining_store(thread, exponential_draw(&random, thread->rate_bytes));
	} else if (exponential_draw(&random, rate) >= charge) {
		return 0;
	}
	counter_add(&counters, DUMP_COUNTER_lost_busy, 1);
	return 0;
}

uint32_t sampler_charge(const struct hook_call *call, uint64_t size)
{
	uint64_t charge = size ? size : 1;
	uint64_t tp = arch_thread_pointer();
	uint32_t rate = rate_now(), sampled = 0;
	struct thread_state *thread = call->thread;
	uint64_t before;
	int fresh, charged;

	/* All distances are 0, whoever interrupts whom. */
	if (rate == 1 && thread && thread->rate_bytes == 1) {
		remaining_store(thread, 0);
		return 1;
	}
	thread = thread_state_acquire(tp, call->sp, &fresh);
	if (!thread)
		return charge_lost(call, tp, charge, rate);
	charged = thread == call->thread && !fresh;
	if (fresh) {
		known_stacks_learn(tp);
		state_begin(thread, rate);
		thread_state_publish(thread, tp);
	} else if (!call->thread) {
		thread_state_show(thread, tp);
	}
	before = remaining_load(thread);
	if (charged)
		before += charge;
	/* Below 0: it was charged between the trampoline and here, by a signal handler, or some time by a call that
	 * never came here. */
	if (before < charge || before >> 63) {
		sampled = thread->rate_bytes;
		state_draw(thread, rate);
	} else {
		remaining_store(thread, before - charge);
	}
	thread_state_release(thread);
	return sampled;
}
