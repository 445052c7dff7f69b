/* SPDX-License-Identifier: MIT */
#include "stats/leaks.h"

#include <math.h>

#include "stats/gamma.h"

#define LEAST_SHARE 0.25 /* of a steady stream's part */
#define ONSET_SHARE 20u  /* of the old blocks: one in so many was born before it */
#define SLOWER_P 0.01
#define UNCOMPARED_BINS 2u /* the last ones: what was worked on may be at its end before the recording is */
#define DECIDES_LEAST 2.0
#define DECIDES_MOST 100.0
#define LIVES                                                                                                          \
	5.0 /* of a steady state whose blocks live for less than such a part of the session, old ones do not become    \
	       more */
#define EXACT_LIMIT 100000u

struct leak_window leak_window(uint64_t start, uint64_t end, uint64_t age)
{
	struct leak_window w = { .start = start, .end = end, .age = age ? age : (end - start) / 3 };

	if (w.age > end - start)
		w.age = end - start;
	w.middle = start + w.age + (end - start - w.age) / 2;
	return w;
}

/* Where in the session; as doubles, two large numbers may be the same. */
static uint32_t bin_of(const struct leak_window *w, uint64_t stamp)
{
	double span = (double)(w->end - w->start);
	double after = stamp > w->start ? (double)(stamp - w->start) : 0;

	return after < span ? (uint32_t)(after / span * LEAK_BINS) : LEAK_BINS - 1;
}

/* What is seen of a block after it has got so old, once and twice. */
static void watch(struct leak_tally *t, const struct leak_window *w, bool live, uint64_t born, uint64_t freed)
{
	uint64_t age = (live ? w->end : freed) - born;

	for (unsigned i = 0; i < LEAK_AGES; i++) {
		uint64_t old = (i + 1) * w->age;
		if (age < old || w->end <= w->start)
			return;
		t->watch[i].watched += (double)(age - old) / (double)(w->end - w->start);
		t->watch[i].freed += !live;
	}
}

void leak_add(struct leak_tally *t, const struct leak_window *w, const struct leak_sample *sample)
{
	const uint64_t born = sample->born, freed = sample->freed;
	const bool comparable = sample->comparable;
	bool live = !freed || freed > w->end;
	bool old_at_middle = born + w->age <= w->middle && (live || freed > w->middle);
	bool old_at_end = live && born + w->age <= w->end;

	t->kept += !live && comparable;
	t->lost += comparable && old_at_middle && !live;
	t->old_bins = bin_of(w, w->end - w->age) + (w->age == 0);
	if (comparable && born <= w->end && (live || freed >= born)) {
		watch(t, w, live, born, freed);
		t->births[bin_of(w, born)] += live;
	}
	if (!old_at_end)
		return;
	estimate_add(&t->bytes, (double)sample->size, sample->p);
	estimate_add_block(&t->count, sample->p);
	estimate_expect(&t->bytes, sample->rate > 1 ? sample->rate : 0);
	if (w->end - born > t->oldest && born >= w->start)
		t->oldest = w->end - born;
	t->gained += comparable && !old_at_middle;
}

void leak_merge(struct leak_tally *into, const struct leak_tally *from)
{
	estimate_merge(&into->bytes, &from->bytes);
	estimate_merge(&into->count, &from->count);
	into->gained += from->gained;
	into->lost += from->lost;
	for (size_t i = 0; i < LEAK_BINS; i++)
		into->births[i] += from->births[i];
	for (size_t i = 0; i < LEAK_AGES; i++) {
		into->watch[i].watched += from->watch[i].watched;
		into->watch[i].freed += from->watch[i].freed;
	}
	if (from->old_bins > into->old_bins)
		into->old_bins = from->old_bins;
	into->kept += from->kept;
	into->dropped += from->dropped;
	if (from->oldest > into->oldest)
		into->oldest = from->oldest;
}

double leak_binomial_tail(uint64_t n, uint64_t k)
{
	if (!k)
		return 1;
	if (k > n)
		return 0;
	if (n > EXACT_LIMIT) /* the normal approximation, with the correction for continuity */
		return 0.5 * erfc(((double)k - 0.5 - (double)n / 2) / sqrt((double)n / 2));
	double term =
		exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) - (double)n * M_LN2);
	double sum = 0;
	for (uint64_t i = k; i <= n && term > 0; i++) {
		sum += term;
		term *= (double)(n - i) / (double)(i + 1);
		if (term < sum * 1e-17 && i > n / 2)
			break;
	}
	return fmin(sum, 1);
}

/* Of the samples that the history has dropped, as many were so old as of those that it has kept. */
static double dropped_old(const struct leak_tally *t, unsigned age)
{
	return t->dropped && t->kept ? ceil((double)t->dropped * (double)t->watch[age].freed / (double)t->kept) : 0;
}

double leak_p_value(const struct leak_tally *t)
{
	uint64_t lost = t->lost + (uint64_t)dropped_old(t, 0);

	return t->gained > lost ? leak_binomial_tail(t->gained + lost, t->gained) : 1;
}

static uint64_t born_in(const struct leak_tally *t, uint32_t from, uint32_t end)
{
	uint64_t n = 0;

	for (uint32_t i = from; i < end; i++)
		n += t->births[i];
	return n;
}

/* The part of the session in which the growth began. */
static uint32_t onset(const struct leak_tally *t, uint32_t old_bins)
{
	uint64_t before = born_in(t, 0, old_bins) / ONSET_SHARE;
	uint64_t n = 0;
	uint32_t i = 0;

	for (; i + 1 < old_bins; i++)
		if ((n += t->births[i]) > before)
			break;
	return i;
}

enum leak_verdict leak_shape(const struct leak_tally *t)
{
	uint32_t old_bins = t->old_bins ? t->old_bins : 1;
	uint32_t first = onset(t, old_bins);
	uint32_t length = LEAK_BINS - first;
	double pace = (double)born_in(t, first, old_bins) / (old_bins - first); /* a bin */

	if (!t->gained)
		return LEAK_NONE;
	for (uint32_t i = 0; i < LEAK_PARTS; i++) {
		uint32_t from = first + length * i / LEAK_PARTS;
		uint32_t end = first + length * (i + 1) / LEAK_PARTS;
		uint64_t n = born_in(t, from, end);
		if (!n || (double)n < LEAST_SHARE * pace * (end - from))
			return LEAK_STEP;
	}
	uint32_t half = length > UNCOMPARED_BINS ? (length - UNCOMPARED_BINS) / 2 : 0;
	uint64_t early = born_in(t, first, first + half);
	uint64_t late = born_in(t, LEAK_BINS - UNCOMPARED_BINS - half, LEAK_BINS - UNCOMPARED_BINS);
	return leak_binomial_tail(early + late, early) < SLOWER_P ? LEAK_FILLING : LEAK_GROWTH;
}

/* No more than so many were freed, on average. */
static double freed_high(const struct leak_tally *t, unsigned age, double confidence)
{
	return gamma_q_inverse((double)t->watch[age].freed + dropped_old(t, age) + 1, (1 - confidence) / 2 / LEAK_AGES);
}

double leak_residual_life(const struct leak_tally *t, double confidence)
{
	double most = 0;

	for (unsigned i = 0; i < LEAK_AGES; i++)
		most = fmax(most, t->watch[i].watched / freed_high(t, i, confidence));
	return most;
}

double leak_decides_after(const struct leak_tally *t, double confidence)
{
	double watched = t->watch[0].watched;
	double freed = (double)t->watch[0].freed + dropped_old(t, 0);

	if (!(watched > 0))
		return INFINITY;
	/* If it is a leak, what is watched rises with the square of the time. */
	double times = fmax(DECIDES_LEAST, gamma_q_inverse(1, (1 - confidence) / 2 / LEAK_AGES) / watched);
	/* If not, the old ones become no more when the session is long against their lives. */
	if (freed > 0)
		times = fmax(times, LIVES * watched / freed);
	return times <= DECIDES_MOST ? times : INFINITY;
}
