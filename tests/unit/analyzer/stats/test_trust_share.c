/* SPDX-License-Identifier: MIT */
/*
 * The share of missed frees: addresses that are given out again and again are simulated, with fixed seeds. Each mean
 * has to be within 4.5 standard errors of the truth, which a right estimate fails in 1 of 150 000 cases.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "heap_simulation.h"
#include "stats/trust.h"

#define RATE 65536u
#define RUNS 400
#define SIZES 2

/* What is allocated at some addresses, one block after the other. */
struct path {
	uint64_t sizes[SIZES]; /* each as often as the other */
	double missed;         /* probability that a free is not seen */
	int addresses, reuses;
};

/* The record of the last sampled block at an address. */
struct record {
	uint64_t size;
	double p; /* 0: none */
};

static void allocate(struct free_tally *t, struct record *record, uint64_t size, struct random_source *random)
{
	double p = estimate_probability(size, RATE);

	if (random_unit(random) >= p)
		return;
	if (record->p > 0) {
		t->replaced += (double)record->size / record->p;
		free_tally_add_pair(t, record->size, record->p, p);
	}
	*record = (struct record){ size, p };
}

static void release(struct free_tally *t, struct record *record)
{
	if (record->p > 0)
		free_sum_add(&t->seen, (double)record->size, record->p, 0);
	record->p = 0;
}

/* What happened, in bytes. */
struct truth {
	double missed, all;
};

static struct free_tally simulate(const struct path *path, struct random_source *random, struct truth *truth)
{
	struct free_tally t = { 0 };

	for (int a = 0; a < path->addresses; a++) {
		struct record record = { 0 };
		for (int i = 0; i < path->reuses; i++) {
			uint64_t size = path->sizes[exponential_random(random) % SIZES];
			allocate(&t, &record, size, random);
			bool seen = random_unit(random) >= path->missed;
			if (seen)
				release(&t, &record);
			truth->missed += seen ? 0 : (double)size;
			truth->all += (double)size;
		}
		if (record.p > 0)
			free_sum_add(&t.live, (double)record.size, record.p, 0);
	}
	return t;
}

struct outcome {
	double mean, error, covered; /* of the share; how often its interval holds what happened */
	int known;                   /* runs with a pair */
};

static struct outcome run(const struct path *paths, int n, uint64_t seed)
{
	struct random_source random = { seed };
	struct outcome o = { 0 };
	double squares = 0;

	for (int k = 0; k < RUNS; k++) {
		struct trust_shares shares = { 0 };
		struct truth happened = { 0, 0 };
		for (int i = 0; i < n; i++) {
			struct free_tally t = simulate(&paths[i], &random, &happened);
			trust_shares_add(&shares, &t, RATE);
		}
		struct trust_share s = trust_shares_total(&shares, RATE);
		assert_true(s.low <= s.value && s.value <= s.high);
		double truth = happened.missed / happened.all;
		o.mean += s.value / RUNS;
		squares += s.value * s.value / RUNS;
		o.covered += (s.low <= truth && truth <= s.high) / (double)RUNS;
		o.known += s.pairs > 0;
	}
	o.error = sqrt(fmax(0, squares - o.mean * o.mean) / RUNS);
	if (getenv("VERBOSE"))
		printf("mean %.4f +- %.4f  covered %.3f  with a pair %d of %d\n", o.mean, o.error, o.covered, o.known,
		       RUNS);
	return o;
}

/* However often addresses come again, and whatever is sampled of it. */
static void test_share_has_no_bias(void **state)
{
	static const double shares[] = { 0.02, 0.2, 0.5, 0.9 };
	static const uint64_t sizes[][SIZES] = { { 4096, 4096 }, { 1500, 9000 }, { 30000, 200000 } };

	(void)state;
	for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
		for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
			const struct path path = { { sizes[k][0], sizes[k][1] }, shares[i], 100, 400 };
			struct outcome o = run(&path, 1, 1 + 10 * i + k);
			/* A ratio of sums has a bias of the order of its variance, and records at the end have not
			 * ended: beside the error 3 % of the share are allowed. */
			assert_true(fabs(o.mean - shares[i]) < 4.5 * o.error + 0.03 * shares[i]);
			assert_true(o.covered > 0.95 - 4.5 * sqrt(0.95 * 0.05 / RUNS));
		}
}

/* Nothing is missed: never a word about it. All is missed: never anything but all. */
static void test_share_of_nothing_and_of_all(void **state)
{
	const struct path none = { { 1500, 9000 }, 0, 100, 200 };
	const struct path all = { { 1500, 9000 }, 1, 100, 200 };

	(void)state;
	assert_int_equal(run(&none, 1, 50).known, 0);
	struct outcome o = run(&all, 1, 51);
	assert_int_equal(o.known, RUNS);
	assert_true(fabs(o.mean - 1) < 1e-9);
	assert_true(o.covered > 0.95);
}

/* One stack of which every free is missed, among others of which none is: its addresses hold long rows of missed frees,
 * which must not count more than once each. */
static void test_share_of_one_path(void **state)
{
	const struct path paths[] = { { { 1500, 9000 }, 1, 10, 400 }, { { 1500, 9000 }, 0, 90, 400 } };

	(void)state;
	struct outcome o = run(paths, 2, 60);
	assert_true(fabs(o.mean - 0.1) < 4.5 * o.error + 0.003);
	assert_true(o.covered > 0.95 - 4.5 * sqrt(0.95 * 0.05 / RUNS));
}

/* Many stacks with few pairs each have their share together. */
static void test_share_of_many_small_paths(void **state)
{
	struct path paths[200];

	(void)state;
	for (int i = 0; i < 200; i++)
		paths[i] = (struct path){ { 1500, 9000 }, 0.2, 2, 50 };
	struct outcome o = run(paths, 200, 70);
	assert_true(fabs(o.mean - 0.2) < 4.5 * o.error + 0.006);
	assert_true(o.covered > 0.95 - 4.5 * sqrt(0.95 * 0.05 / RUNS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_has_no_bias),
		cmocka_unit_test(test_share_of_nothing_and_of_all),
		cmocka_unit_test(test_share_of_one_path),
		cmocka_unit_test(test_share_of_many_small_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
