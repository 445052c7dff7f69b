/* SPDX-License-Identifier: MIT */
#include "leaks.h"

#include <math.h>

#define LEAST_SHARE 0.25 /* of a steady stream's part */
#define EXACT_LIMIT 100000u

struct leak_window leak_window(uint64_t start, uint64_t end, uint64_t age)
{
	struct leak_window w = { .start = start, .end = end, .age = age ? age : (end - start) / 3 };

	if (w.age > end - start)
		w.age = end - start;
	w.middle = start + w.age + (end - start - w.age) / 2;
	return w;
}

void leak_add(struct leak_tally *t, const struct leak_window *w, uint64_t size, uint32_t rate, bool comparable,
              uint64_t born, uint64_t freed)
{
	bool live = !freed || freed > w->end;
	bool old_at_middle = born + w->age <= w->middle && (live || freed > w->middle);
	bool old_at_end = live && born + w->age <= w->end;

	if (!live && comparable) {
		t->kept++;
		t->kept_long += freed - born >= w->age;
	}
	t->lost += comparable && old_at_middle && !live;
	if (!old_at_end)
		return;
	double p = estimate_probability(size, rate);
	estimate_add(&t->bytes, (double)size, p);
	estimate_add_block(&t->count, p);
	estimate_expect(&t->bytes, rate > 1 ? rate : 0);
	if (w->end - born > t->oldest && born >= w->start)
		t->oldest = w->end - born;
	if (!comparable)
		return;
	t->gained += !old_at_middle;
	uint64_t span = w->end - w->age - w->start;
	uint64_t after = born > w->start ? born - w->start : 0;
	/* As doubles, two large numbers may be the same. */
	size_t part = after < span ? (size_t)((double)after / (double)span * LEAK_PARTS) : LEAK_PARTS;
	t->births[part < LEAK_PARTS ? part : LEAK_PARTS - 1]++;
}

void leak_merge(struct leak_tally *into, const struct leak_tally *from)
{
	estimate_merge(&into->bytes, &from->bytes);
	estimate_merge(&into->count, &from->count);
	into->gained += from->gained;
	into->lost += from->lost;
	for (size_t i = 0; i < LEAK_PARTS; i++)
		into->births[i] += from->births[i];
	into->kept_long += from->kept_long;
	into->kept += from->kept;
	into->dropped += from->dropped;
	if (from->oldest > into->oldest)
		into->oldest = from->oldest;
}

double binomial_upper_tail(uint64_t n, uint64_t k)
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

double leak_p_value(const struct leak_tally *t)
{
	uint64_t lost = t->lost;

	/* Of the samples that the history has dropped, as many were old ones as of those that it has kept. */
	if (t->dropped && t->kept)
		lost += (uint64_t)ceil((double)t->dropped * (double)t->kept_long / (double)t->kept);
	return t->gained > lost ? binomial_upper_tail(t->gained + lost, t->gained) : 1;
}

enum leak_verdict leak_shape(const struct leak_tally *t)
{
	uint64_t least = UINT64_MAX;
	uint64_t n = 0;

	if (!t->gained)
		return LEAK_NONE;
	for (size_t i = 0; i < LEAK_PARTS; i++) {
		n += t->births[i];
		least = t->births[i] < least ? t->births[i] : least;
	}
	return least && (double)least >= LEAST_SHARE * (double)n / LEAK_PARTS ? LEAK_GROWTH : LEAK_STEP;
}
