/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "efficiency.h"
#include "estimate.h"

#define RATE 65536u

struct sizes {
	uint64_t size;
	int samples, live;
};

static void add(struct efficiency *e, const struct sizes *list, size_t n)
{
	memset(e, 0, sizeof *e);
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < list[i].samples; k++)
			efficiency_add(e, list[i].size, estimate_probability(list[i].size, RATE), k < list[i].live);
}

static double cost(const struct sizes *list, const double *p, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += list[i].samples / estimate_probability(list[i].size, RATE) * fmin(1, p[i]);
	return sum;
}

static double variance(const struct sizes *list, const double *p, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		double z = (double)list[i].size;
		sum += list[i].live / estimate_probability(list[i].size, RATE) * z * z * (1 / fmin(1, p[i]) - 1);
	}
	return sum;
}

/* No other chances of the same cost have less variance: a thousand are tried, near and far. */
static void test_nothing_is_better_than_the_best(void **state)
{
	static const struct sizes list[] = {
		{ 16, 4000, 400 }, { 256, 3000, 30 }, { 4096, 2000, 1000 }, { 40000, 1000, 100 }, { 400000, 500, 490 }
	};
	enum { N = sizeof list / sizeof list[0] };
	static struct efficiency e;
	struct efficiency_result r;
	double best[N], now[N], other[N];
	uint64_t random = 1;

	(void)state;
	add(&e, list, N);
	assert_true(efficiency_solve(&e, 1, &r));
	assert_int_equal(r.group_count, N);
	for (size_t i = 0; i < N; i++) {
		best[i] = r.groups[i].best;
		now[i] = estimate_probability(list[i].size, RATE);
		assert_true(fabs(r.groups[i].now / now[i] - 1) < 1e-9);
		assert_true(r.groups[i].least <= (double)list[i].size && (double)list[i].size < r.groups[i].most);
	}
	assert_true(r.samples == 10500 && fabs(cost(list, best, N) / 10500 - 1) < 1e-6);
	assert_true(fabs(sqrt(variance(list, now, N)) / r.error_now - 1) < 1e-9);
	assert_true(fabs(sqrt(variance(list, best, N)) / r.error_best - 1) < 1e-6);
	assert_true(fabs(variance(list, best, N) / variance(list, now, N) / r.ratio - 1) < 1e-6);
	assert_true(r.ratio < 0.9 && r.samples_best < 0.95 * r.samples);
	for (int k = 0; k < 1000; k++) {
		double spread = k % 10 * 0.1 + 0.01;
		for (size_t i = 0; i < N; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			other[i] = best[i] * exp(spread * ((double)(random >> 33) / 0x40000000 - 1));
		}
		double low = 1e-3;
		double high = 1e3;
		for (int i = 0; i < 60; i++) {
			double scaled[N];
			for (size_t c = 0; c < N; c++)
				scaled[c] = other[c] * sqrt(low * high);
			*(cost(list, scaled, N) < 10500 ? &low : &high) = sqrt(low * high);
		}
		for (size_t i = 0; i < N; i++)
			other[i] *= high;
		/* Survival is smoothed by one sample in so many: a part of 1e-3. */
		assert_true(variance(list, other, N) > variance(list, best, N) * (1 - 1e-3));
	}
}

/* Small blocks that live alike, whatever their size is: a Poisson process over bytes is the best. */
static void test_survival_alike_is_sampled_best(void **state)
{
	static const struct sizes list[] = {
		{ 16, 2000, 1000 }, { 100, 2000, 1000 }, { 700, 2000, 1000 }, { 2000, 2000, 1000 }
	};
	static struct efficiency e;
	struct efficiency_result r;

	(void)state;
	add(&e, list, 4);
	assert_true(efficiency_solve(&e, 1, &r));
	assert_true(r.ratio > 0.999 && r.ratio <= 1);
	assert_true(r.samples_best > 0.999 * r.samples);
}

static void test_few_samples_promise_little(void **state)
{
	static const struct sizes list[] = { { 100, 10, 1 }, { 2000, 10, 8 }, { 5000, 5, 0 } };
	static struct efficiency e;
	struct efficiency_result r;

	(void)state;
	add(&e, list, 3);
	assert_true(efficiency_solve(&e, 1, &r));
	assert_int_equal(r.group_count, 1);
	assert_true(r.ratio > 0.99);
}

static void test_history_that_is_gone_counts(void **state)
{
	static const struct sizes list[] = { { 100, 1000, 100 }, { 2000, 1000, 900 } };
	static struct efficiency e;
	struct efficiency_result r, scaled;

	(void)state;
	add(&e, list, 2);
	assert_true(efficiency_solve(&e, 1, &r) && efficiency_solve(&e, 3, &scaled));
	assert_true(scaled.ratio == r.ratio && scaled.samples == 3 * r.samples &&
	            scaled.samples_best == 3 * r.samples_best);
	assert_true(scaled.groups[0].survival == r.groups[0].survival / 3);
}

static void test_nothing_to_compare(void **state)
{
	static const struct sizes freed[] = { { 100, 100, 0 } };
	static struct efficiency e;
	struct efficiency_result r;

	(void)state;
	assert_false(efficiency_solve(&e, 1, &r));
	add(&e, freed, 1);
	assert_false(efficiency_solve(&e, 1, &r));
	memset(&e, 0, sizeof e);
	for (int i = 0; i < 100; i++)
		efficiency_add(&e, i ? 1ull << (i % 64) : 0, 1, true);
	efficiency_add(&e, UINT64_MAX, 1, true);
	assert_false(efficiency_solve(&e, 1, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_better_than_the_best),
		cmocka_unit_test(test_survival_alike_is_sampled_best),
		cmocka_unit_test(test_few_samples_promise_little),
		cmocka_unit_test(test_history_that_is_gone_counts),
		cmocka_unit_test(test_nothing_to_compare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
