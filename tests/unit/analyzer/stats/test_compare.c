/* SPDX-License-Identifier: MIT */
/*
 * Growth and leaks by simulation, with fixed seeds. Where a share of false alarms is nominally 5 %, more than 8 % in
 * 400 or 7.5 % in 1000 have a probability below 1 % if the seeds change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stats/compare.h"
#include "heap_simulation.h"
#include "stats/leaks.h"

#define RATE 65536u

static void assert_near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("%.17g is not %.17g", got, want);
}

static void test_binomial_tail(void **state)
{
	(void)state;
	assert_near(leak_binomial_tail(10, 8), 56.0 / 1024, 1e-12);
	assert_near(leak_binomial_tail(3, 3), 0.125, 1e-12);
	assert_near(leak_binomial_tail(101, 51), 0.5, 1e-12);
	assert_near(leak_binomial_tail(40, 40), 0x1p-40, 1e-10);
	assert_true(leak_binomial_tail(7, 0) == 1 && leak_binomial_tail(7, 8) == 0);
	assert_near(leak_binomial_tail(99999, 50400), leak_binomial_tail(100001, 50401),
	            0.02); /* exact against normal */
}

/* The example of Benjamini and Hochberg (1995), section 3.2: 15 comparisons, 4 are rejected at 5 %. */
static void test_benjamini_hochberg(void **state)
{
	double p[] = { 0.0459, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298,
		       0.0344, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000 };
	double none[] = { 0.9, 0.2, 0.04 };

	(void)state;
	assert_true(compare_threshold(p, 15, 0.05) == 0.0095);
	assert_true(compare_threshold(none, 3, 0.05) < 0);
	assert_true(compare_threshold(NULL, 0, 0.05) < 0);
}

static void test_growth_is_exact_at_rate_1(void **state)
{
	struct estimate_sum plus = { .value = 1000, .seen = 1000, .samples = 10 };
	struct estimate_sum minus = { .value = 400, .seen = 400, .samples = 4 };

	(void)state;
	struct estimate x = compare_interval(&plus, &minus, 0.95);
	assert_true(x.value == 600 && x.low == 600 && x.high == 600 && x.error == 0);
	assert_true(compare_p_value(&plus, &minus) < 1e-9);
	assert_true(compare_p_value(&minus, &plus) == 1);
}

/* The interval of the difference of two heaps covers at least 94 %, and equal heaps differ by chance in 2.5 % at most
 * each way. */
static void test_growth_interval_covers(void **state)
{
	static const double expected[][2] = { { 1, 1 },  { 3, 3 },     { 10, 10 }, { 100, 100 },
		                              { 3, 30 }, { 100, 130 }, { 0, 5 } };
	struct random_source random = { 4711 };
	enum { HEAPS = 2000 };

	(void)state;
	for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
		struct block_class before = { 512, (uint64_t)(expected[k][0] * RATE / 512) };
		struct block_class after = { 512, (uint64_t)(expected[k][1] * RATE / 512) };
		int covered = 0;
		int significant = 0;
		for (int i = 0; i < HEAPS; i++) {
			struct sampled_heap old, new;
			heap_sample(&old, &before, 1, RATE, &random);
			heap_sample(&new, &after, 1, RATE, &random);
			struct estimate x = compare_interval(&new.bytes, &old.bytes, 0.95);
			double truth = new.true_bytes - old.true_bytes;
			covered += x.low <= truth && truth <= x.high;
			significant += x.low > 0;
			if ((x.low > 0) != (compare_p_value(&new.bytes, &old.bytes) < 0.025))
				assert_true(fabs(x.low) < 0.01 * RATE); /* only on the edge */
		}
		if (getenv("VERBOSE"))
			printf("%4g -> %4g samples: covers %.4f, grown %.4f\n", expected[k][0], expected[k][1],
			       (double)covered / HEAPS, (double)significant / HEAPS);
		assert_true(covered >= 0.94 * HEAPS);
		if (expected[k][0] == expected[k][1])
			assert_true(significant <= 0.035 * HEAPS);
	}
}

/* Equal heaps of 50 stacks: any row is called grown in at most 5 % of the comparisons. */
static void test_equal_heaps_have_not_grown(void **state)
{
	enum { RUNS = 400, STACKS = 50 };
	struct random_source random = { 99 };
	int alarms = 0;

	(void)state;
	for (int run = 0; run < RUNS; run++) {
		double p[STACKS];
		for (int i = 0; i < STACKS; i++) {
			struct block_class heap = { 64u << i % 8, ((1u + (unsigned)i) * RATE) >> (6 + i % 8) };
			struct sampled_heap old, new;
			heap_sample(&old, &heap, 1, RATE, &random);
			heap_sample(&new, &heap, 1, RATE, &random);
			p[i] = compare_p_value(&new.bytes, &old.bytes);
		}
		alarms += compare_threshold(p, STACKS, 0.05) >= 0;
	}
	if (getenv("VERBOSE"))
		printf("equal heaps: %d alarms in %d runs\n", alarms, RUNS);
	assert_true(alarms <= 0.08 * RUNS);
}

/*
 * Numbers of blocks of mixed sizes, of which either side may have missed the small ones: equal heaps have grown in 2.5
 * % at most, alone, and any of 50 stacks in at most 5 %.
 */
static void test_equal_numbers_of_blocks_have_not_grown(void **state)
{
	static const uint64_t sizes[][2] = {
		{ 16, 16 }, { 64, 4096 }, { 16, RATE }, { 512, 4 * RATE }, { 16, 64 * RATE }
	};
	enum { HEAPS = 2000, RUNS = 400, STACKS = 50, KINDS = sizeof sizes / sizeof sizes[0] };
	struct random_source random = { 2718 };
	int alarms = 0;

	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		for (double samples = 1; samples < 200; samples *= 3) {
			int grown = 0;
			struct block_class heap[2];
			for (int c = 0; c < 2; c++)
				heap[c] = (struct block_class){
					sizes[k][c],
					(uint64_t)ceil(samples / 2 / estimate_probability(sizes[k][c], RATE))
				};
			for (int i = 0; i < HEAPS; i++) {
				struct sampled_heap old, new;
				heap_sample(&old, heap, 2, RATE, &random);
				heap_sample(&new, heap, 2, RATE, &random);
				compare_share_sizes(&new.count, RATE, &old.count, RATE);
				grown += compare_interval(&new.count, &old.count, 0.95).low > 0;
			}
			if (getenv("VERBOSE"))
				printf("%llu and %llu B, %g samples: grown %.4f\n", (unsigned long long)sizes[k][0],
				       (unsigned long long)sizes[k][1], samples, (double)grown / HEAPS);
			assert_true(grown <= 0.035 * HEAPS);
		}
	}
	for (int run = 0; run < RUNS; run++) {
		double p[STACKS];
		for (int i = 0; i < STACKS; i++) {
			struct block_class heap[] = { { 16u << i % 4, ((1u + (unsigned)i) * RATE) >> (5 + i % 4) },
				                      { 1024u << i % 8, 64u >> i % 8 } };
			struct sampled_heap old, new;
			heap_sample(&old, heap, 2, RATE, &random);
			heap_sample(&new, heap, 2, RATE, &random);
			compare_share_sizes(&new.count, RATE, &old.count, RATE);
			p[i] = compare_p_value(&new.count, &old.count);
		}
		alarms += compare_threshold(p, STACKS, 0.05) >= 0;
	}
	if (getenv("VERBOSE"))
		printf("equal numbers: %d alarms in %d runs\n", alarms, RUNS);
	assert_true(alarms <= 0.08 * RUNS);
}

/* A session of 1e6 stamps; samples of a stack come at a rate per stamp and live as long as their kind says. */
#define SESSION 1000000.0

enum lifetime { SHORT, EXPONENTIAL, UNIFORM, HEAVY, CACHE, STEP, FOR_EVER, LIFETIMES };

static double draw_lifetime(enum lifetime kind, struct random_source *random)
{
	switch (kind) {
	case SHORT: return 1000 * random_unit(random);
	case EXPONENTIAL: return -0.1 * SESSION * log(random_unit(random));
	case UNIFORM: return 0.5 * SESSION * random_unit(random);
	case HEAVY: return fmin(0.6 * SESSION, 1000 * pow(random_unit(random), -1.5)); /* longer: as good as a leak */
	default: return 10 * SESSION;
	}
}

static void add_block(struct leak_tally *tally, const struct leak_window *window, uint64_t born, uint64_t freed)
{
	const struct leak_sample sample = { 100, RATE, estimate_probability(100, RATE), true, born, freed };

	leak_add(tally, window, &sample);
}

static struct leak_tally run_stack(enum lifetime kind, double samples, struct random_source *random)
{
	struct leak_window window = leak_window(0, (uint64_t)SESSION, 0);
	struct leak_tally tally = { 0 };

	for (double born = 0;;) {
		born -= log(random_unit(random)) * SESSION / samples;
		if (born > SESSION)
			return tally;
		double at = kind == CACHE ? born / 50 : kind == STEP ? 0.5 * SESSION + born / 50 : born;
		double died = at + draw_lifetime(kind, random);
		add_block(&tally, &window, (uint64_t)at, died < SESSION ? (uint64_t)died + 1 : 0);
	}
}

/* How many of the stacks are called a leak; which[i]: stack i is. */
static int judge(const struct leak_tally *tallies, int n, bool *which)
{
	double p[64];
	size_t candidates = 0;
	int leaks = 0;

	for (int i = 0; i < n; i++)
		if (tallies[i].count.samples)
			p[candidates++] = leak_shape(&tallies[i]) > LEAK_STEP ? leak_p_value(&tallies[i]) : 1;
	double threshold = compare_threshold(p, candidates, 0.05);
	for (int i = 0; i < n; i++) {
		which[i] = tallies[i].count.samples && leak_p_value(&tallies[i]) <= threshold &&
		           leak_shape(&tallies[i]) == LEAK_GROWTH && leak_residual_life(&tallies[i], 0.95) > 1;
		leaks += which[i];
	}
	return leaks;
}

/* Churn of all kinds, caches that are filled once: an alarm in at most 5 % of the runs. */
static void test_no_leak_is_called_where_none_is(void **state)
{
	enum { RUNS = 1000, STACKS = 40 };
	struct random_source random = { 12345 };
	int alarms = 0;

	(void)state;
	for (int run = 0; run < RUNS; run++) {
		struct leak_tally tallies[STACKS];
		bool which[STACKS];
		for (int i = 0; i < STACKS; i++)
			tallies[i] = run_stack((enum lifetime)(i % FOR_EVER), 5 << i % 7, &random);
		alarms += judge(tallies, STACKS, which) > 0;
	}
	if (getenv("VERBOSE"))
		printf("no leak: %d alarms in %d runs\n", alarms, RUNS);
	assert_true(alarms <= 0.075 * RUNS);
}

/* Of a span that no double can hold, a block of its last moment is one of the last part. */
static void test_births_of_the_last_moment(void **state)
{
	struct leak_window window = leak_window(5, 1ull << 62, 0);
	struct leak_tally tally = { 0 };

	(void)state;
	for (uint64_t before = 1; before < 40; before++)
		add_block(&tally, &window, window.end - before, 0);
	assert_int_equal(tally.births[LEAK_BINS - 1], 39);
	assert_int_equal(tally.watch[0].freed, 0); /* what is after */
}

/* In how many of 200 runs one leak of so many samples among churn of thousands is found. */
static int leaks_found(double samples)
{
	enum { RUNS = 200, STACKS = 20 };
	struct random_source random = { 54321 };
	int found = 0;

	for (int run = 0; run < RUNS; run++) {
		struct leak_tally tallies[STACKS];
		bool which[STACKS];
		for (int i = 1; i < STACKS; i++)
			tallies[i] = run_stack((enum lifetime)(i % FOR_EVER), i % FOR_EVER ? 300 : 3000, &random);
		tallies[0] = run_stack(FOR_EVER, samples, &random);
		judge(tallies, STACKS, which);
		found += which[0];
	}
	if (getenv("VERBOSE"))
		printf("slow leak of %g samples: found in %d of %d runs\n", samples, found, RUNS);
	return found;
}

static void test_slow_leak_is_found(void **state)
{
	(void)state;
	assert_true(leaks_found(60) >= 190);
	assert_true(leaks_found(40) >= 170);
}

/* Blocks that stay, born between these parts of the session, at a pace that grows so many times until the end. */
static struct leak_tally born_between(double from, double to, double faster)
{
	struct leak_window window = leak_window(0, (uint64_t)SESSION, 0);
	struct leak_tally tally = { 0 };

	for (int i = 0; i < 90; i++) {
		double part = pow((i + 0.5) / 90, 1 / faster);
		add_block(&tally, &window, (uint64_t)(SESSION * (from + (to - from) * part)), 0);
	}
	return tally;
}

static void test_shapes(void **state)
{
	struct random_source random = { 3 };

	(void)state;
	struct leak_tally cache = run_stack(CACHE, 100, &random);
	assert_int_equal(leak_shape(&cache), LEAK_NONE);
	assert_true(leak_p_value(&cache) == 1);
	struct leak_tally step = run_stack(STEP, 100, &random);
	assert_true(leak_p_value(&step) < 1e-6);
	assert_int_equal(leak_shape(&step), LEAK_STEP);
	struct leak_tally leak = run_stack(FOR_EVER, 100, &random);
	assert_int_equal(leak_shape(&leak), LEAK_GROWTH);
	/* It may begin late and grow faster; what has stopped, or has come at two times, is none. */
	struct leak_tally late = born_between(0.05, 1, 1.3);
	assert_int_equal(leak_shape(&late), LEAK_GROWTH);
	struct leak_tally very_late = born_between(0.4, 1, 1);
	assert_int_equal(leak_shape(&very_late), LEAK_GROWTH);
	struct leak_tally filling = born_between(0, 1, 0.5);
	assert_int_equal(leak_shape(&filling), LEAK_FILLING);
	/* What is worked on may end a little before the recording does. */
	struct leak_tally ended = born_between(0.25, 0.93, 1);
	for (int i = 0; i < 3; i++)
		leak_merge(&ended, &ended); /* eight times as many */
	assert_int_equal(leak_shape(&ended), LEAK_GROWTH);
	struct leak_tally filled = born_between(0, 0.45, 1);
	assert_int_equal(leak_shape(&filled), LEAK_STEP);
	struct leak_tally once = born_between(0.2, 0.21, 1);
	struct leak_tally again = born_between(0.5, 0.51, 1);
	leak_merge(&once, &again);
	assert_int_equal(leak_shape(&once), LEAK_STEP);
	/* A history that was dropped makes the test careful, not blind. */
	leak.kept = 100;
	leak.watch[0].freed = 50;
	leak.dropped = 1000;
	assert_true(leak_p_value(&leak) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_binomial_tail),
		cmocka_unit_test(test_benjamini_hochberg),
		cmocka_unit_test(test_growth_is_exact_at_rate_1),
		cmocka_unit_test(test_growth_interval_covers),
		cmocka_unit_test(test_equal_heaps_have_not_grown),
		cmocka_unit_test(test_equal_numbers_of_blocks_have_not_grown),
		cmocka_unit_test(test_births_of_the_last_moment),
		cmocka_unit_test(test_no_leak_is_called_where_none_is),
		cmocka_unit_test(test_slow_leak_is_found),
		cmocka_unit_test(test_shapes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
