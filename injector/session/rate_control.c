/* SPDX-License-Identifier: MIT */
/*
 * The cost of sampling is what the payload's slow path counts in cycles, plus what it does before it looks at the
 * clock, which a benchmark measures (OUTSIDE_NS; payload_pair of bench/ prints it), plus what the target loses because
 * a sample has displaced its data from the caches. That is half as much again in the middle of real servers, from 0.2
 * to 1 of it (DISPLACED; bench/switched prints both). Where each call is recorded, all of that is in the caches. The
 * fast path is no part of the cost: no rate makes it cheaper. Nor is what it takes to follow mappings (--mmap), which
 * is counted apart (header.mapping_cycles) and shown.
 */
#include "session/rate_control.h"

#include <math.h>

#include "base/size.h"

#define OUTSIDE_NS 90u        /* of each sample and of its free: entry, the next interval, the lookup of a free */
#define DISPLACED 0.5         /* of the time of the slow path, of samples */
#define COST_MAX_NS 1e18      /* 30 years */
#define CHANGES_KEPT_BACK 64u /* of the records of changes, for the steps up */

static double ns_per_cycle(const struct dump_header *h)
{
	uint64_t cycles = h->clock_latest.stamp - h->clock_start.stamp;
	uint64_t ns = h->clock_latest.monotonic_ns - h->clock_start.monotonic_ns;

	return cycles && ns ? (double)ns / (double)cycles : 0;
}

static struct governor_reading read_now(const struct session *s)
{
	const struct dump_writer *w = &s->recording.dump;
	uint64_t calls =
		dump_writer_counter(w, DUMP_COUNTER_samples_taken) + dump_writer_counter(w, DUMP_COUNTER_samples_freed);
	double cycles = (double)dump_writer_counter(w, DUMP_COUNTER_slow_cycles);
	struct governor_reading look = { .now_ns = clock_monotonic_ns(), .cpu_ns = target_cpu_ns(&s->target) };

	double displaced = s->options.rate_bytes > 1 ? DISPLACED : 0;
	double cost_ns = cycles * ns_per_cycle(w->own) * (1 + displaced) + (double)calls * OUTSIDE_NS;
	/* Counters are the target's. */
	look.cost_ns = cost_ns < COST_MAX_NS ? (uint64_t)cost_ns : (uint64_t)COST_MAX_NS;
	return look;
}

double rate_control_mappings(const struct session *s)
{
	const struct dump_writer *w = &s->recording.dump;
	const double cpu_ns = (double)w->own->cpu_ns;

	return cpu_ns > 0 ? fmin(1, (double)w->shared->mapping_cycles * ns_per_cycle(w->own) / cpu_ns) : 0;
}

void rate_control_start(struct session *s)
{
	const struct governor_reading start = { .now_ns = clock_monotonic_ns(), .cpu_ns = target_cpu_ns(&s->target) };

	s->recording.cpu_start_ns = start.cpu_ns;
	governor_init(&s->recording.governor, s->options.max_overhead, s->options.rate_bytes, &start);
}

void rate_control_note_cost(struct session *s)
{
	struct governor_reading look = read_now(s);

	if (look.cpu_ns <= s->recording.cpu_start_ns)
		return;
	dump_writer_cost(&s->recording.dump, look.cpu_ns - s->recording.cpu_start_ns, look.cost_ns);
	if (!s->options.share)
		return;
	atomic_store_explicit(&s->options.share->cpu_ns, look.cpu_ns - s->recording.cpu_start_ns, memory_order_relaxed);
	atomic_store_explicit(&s->options.share->cost_ns, look.cost_ns, memory_order_relaxed);
}

void rate_control_least(struct session *s, uint64_t rate)
{
	struct governor_reading look = read_now(s);

	governor_init(&s->recording.governor, s->options.max_overhead, rate, &look);
}

void rate_control_poll(struct session *s)
{
	struct governor_reading look = read_now(s);
	struct governor *g = &s->recording.governor;
	char old_text[SIZE_TEXT], new_text[SIZE_TEXT];
	const struct session_share *share = s->options.share;
	uint64_t old = g->rate;
	struct err e;

	if (!look.cpu_ns || !ns_per_cycle(s->recording.dump.own))
		return; /* it has ended, or the clock is too young */
	if (share)
		g->limit = atomic_load_explicit(&share->limit_ppm, memory_order_relaxed) / 1e6;
	uint64_t rate =
		governor_decide(g, &look, dump_writer_rate_changes_left(&s->recording.dump) > CHANGES_KEPT_BACK);
	if (rate == old)
		return;
	const struct dump_rate_change change = {
		.reason = rate > old ? DUMP_RATE_COSTLY : DUMP_RATE_CHEAP,
		.stamp = clock_dump_stamp(),
		.old_bytes = old,
		.new_bytes = rate,
		.overhead_ppm = g->overhead < 1 ? (uint32_t)(g->overhead * 1e6) : 1000000u,
	};
	if (dump_writer_rate(&s->recording.dump, &change, &e) < 0)
		session_say(s, "memattach: the change of the rate has no room in the dump: %s", e.text);
	if (s->options.verbose)
		session_say(s, "sampling cost %.2f %% (limit %g %%): one sample per %s instead of %s",
		            100 * g->overhead, 100 * g->limit, size_format((double)rate, new_text),
		            size_format((double)old, old_text));
}
