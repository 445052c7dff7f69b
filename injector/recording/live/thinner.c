/* SPDX-License-Identifier: MIT */
#include "recording/live/thinner.h"

#include <math.h>
#include <stdatomic.h>

#include "recording/live/live_records.h"

#define CROWDED 2 /* one of so many entries is in use: more, and buckets of all levels begin to be full */
#define NEAR 4
#define AIM 4
#define MUCH 16
#define DOUBLINGS 33
#define RATE_MAX 0xffffffffull

bool thinner_is_needed(const struct dump_writer *w)
{
	return w->live_full && dump_writer_live(w) > dump_writer_live_capacity(w) / CROWDED;
}

bool thinner_is_near(const struct dump_writer *w)
{
	return w->live_full && dump_writer_live(w) > dump_writer_live_capacity(w) / NEAR;
}

bool thinner_has_much_room(const struct dump_writer *w)
{
	return dump_writer_live(w) < dump_writer_live_capacity(w) / MUCH;
}

/* How often the least rate can be doubled until the sample is given up. */
static int doublings_of(const struct dump_live_record *record, uint64_t least)
{
	const struct thinning_sample sample = thinning_of_live(record);
	double survival = thinning_survival(&sample);
	double n = floor(log2(survival / (double)least));

	if (!(n >= 0))
		return 0;
	int k = n < DOUBLINGS ? (int)n : DOUBLINGS;
	return k > 0 && ldexp((double)least, k) >= survival ? k - 1 : k;
}

/* The smallest rate that leaves few enough; 0: none does. */
static uint64_t choose_rate(struct dump_writer *w)
{
	uint64_t survivors[DOUBLINGS + 1] = { 0 }, least = w->own->first_rate_bytes, kept = 0;
	uint64_t wanted = dump_writer_live_capacity(w) / AIM;
	int best = -1;

	for (struct live_walk x = { .writer = w }; live_walk_next(&x);)
		survivors[doublings_of(&x.record, least)]++;
	for (int n = DOUBLINGS; n > 0; n--) {
		kept += survivors[n];
		if (kept <= wanted && ldexp((double)least, n) <= (double)RATE_MAX)
			best = n;
	}
	return best > 0 ? least << best : 0;
}

/*
 * Takes the record away, if it still is the one that was looked at. The key stays as a note for the target, whose
 * filter of frees counts the address until somebody takes the place.
 */
static bool give_up(const struct live_table *t, uint64_t k, const struct dump_live_record *seen)
{
	uint64_t key = seen->address;
	bool same;

	if (!atomic_compare_exchange_strong_explicit(live_table_key(t, k), &key, DUMP_KEY_BUSY, memory_order_acquire,
	                                             memory_order_relaxed))
		return false;
	/* The block may have been freed, and another sampled at its address and put in its place, since we looked. */
	same = t->records[k].stamp == seen->stamp && t->records[k].stack == seen->stack;
	if (same)
		atomic_store_explicit(&t->tags[k], 0, memory_order_relaxed);
	atomic_store_explicit(live_table_key(t, k), same ? seen->address | DUMP_KEY_GIVEN_UP : seen->address,
	                      memory_order_release);
	return same;
}

static uint64_t collect(struct dump_writer *w)
{
	uint64_t n = 0;

	for (struct live_walk x = { .writer = w }; live_walk_next(&x);) {
		const struct thinning_sample sample = thinning_of_live(&x.record);
		if (thinning_rate(w->thinnings, w->thinning_count, &sample, UINT64_MAX) ||
		    !give_up(&x.table, x.k, &x.record))
			continue;
		dump_writer_unkept(w, &x.record);
		n++;
	}
	return n;
}

int thinner_make_room(struct dump_writer *w, uint64_t *rate, uint64_t *given_up, struct err *e)
{
	uint64_t old = w->own->rate_bytes;

	uint64_t chosen = choose_rate(w);
	if (!chosen)
		return err_set(e, ERANGE, "there is no room for more live samples, and no larger rate");
	const struct dump_rate_change change = {
		.reason = DUMP_RATE_FULL,
		.stamp = clock_dump_stamp(),
		.old_bytes = old,
		.new_bytes = chosen > old ? chosen : old,
		.thinned_bytes = chosen,
	};
	int rc = dump_writer_rate(w, &change, e);
	if (rc < 0)
		return rc;
	*given_up = collect(w);
	*rate = change.new_bytes;
	dump_writer_count(w, DUMP_COUNTER_samples_thinned, *given_up);
	return 0;
}
