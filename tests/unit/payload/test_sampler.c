/* SPDX-License-Identifier: MIT */
/* Which allocations are sampled, asked of the countdown itself: distances, sizes, threads that are independent or come
 * and go, seeds. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fixture.h"
#include "trampoline_setup.h"
#include "sampler.h"
#include "thread_state.h"

static struct fixture f;

static void start(uint64_t rate, uint64_t seed)
{
	fixture_open(&f, rate, "/proc/self/exe");
	fixture_regions(&f);
	f.start.seed = seed;
	assert_int_equal(memattach_control(CONTROL_START, &f.start), 0);
}

static void end(void)
{
	fixture_inert(&memattach_session);
	assert_int_equal(memattach_control(CONTROL_STOP, NULL), 0);
	fixture_close(&f);
}

/* An allocation of this thread, as the hooks see it. */
static bool sampled(uint64_t size)
{
	uint64_t here;
	const struct hook_call call = { .sp = (uint64_t)&here };

	return sampler_charge(&call, size) != 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: D sqrt(n) > 2.23 has a probability of 1e-4. */
static void test_distances_are_exponential(void **state)
{
	enum { N = 20000, RATE = 2000 };
	double *distance = malloc(N * sizeof(*distance)), d = 0;

	(void)state;
	assert_non_null(distance);
	start(RATE, 99);
	for (int i = 0; i < N; i++) {
		uint64_t bytes = 0;

		while (!sampled(1))
			bytes++;
		distance[i] = (double)bytes;
	}
	end();
	qsort(distance, N, sizeof(*distance), ascending);
	for (int i = 0; i < N; i++) {
		double low = -expm1(-distance[i] / RATE),
		       high = -expm1(-(distance[i] + 1) / RATE); /* of a whole byte */

		d = fmax(d, fmax((double)i / N - high, low - (double)(i + 1) / N));
	}
	free(distance);
	assert_true(d * sqrt(N) < 2.23);
}

/* 1 - exp(-S/R) whatever else is allocated; 0 counts as 1. 4.5 standard deviations. */
static void test_each_size_has_its_probability(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 16, 100, 1000, 4096, 100000 };
	enum { N = 200000, KINDS = sizeof(sizes) / sizeof(sizes[0]), RATE = 4096 };
	int taken[KINDS] = { 0 };

	(void)state;
	start(RATE, 7);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < KINDS; k++)
			taken[k] += sampled(sizes[k]);
	end();
	for (int k = 0; k < KINDS; k++) {
		double p = -expm1(-(double)(sizes[k] ? sizes[k] : 1) / RATE);

		assert_true(fabs(taken[k] - N * p) <= 4.5 * sqrt(N * p * (1 - p)) + 1);
	}
}

#define STEPS 200000

static void *walk(void *argument)
{
	unsigned char *taken = argument;

	for (int i = 0; i < STEPS; i++)
		taken[i] = sampled(100);
	return NULL;
}

/*
 * Threads that do the same at the same time are not sampled alike: no correlation at any of some lags. Which thread
 * gets which numbers is a matter of the time, so the seed does not fix the outcome: 6 standard deviations, 2e-9 each. A
 * correlation of 1.4 % would be seen; the same numbers are one of 100 %.
 */
static void test_threads_are_independent(void **state)
{
	enum { THREADS = 4, LAGS = 3 };
	unsigned char *taken[THREADS];
	pthread_t threads[THREADS];
	const double p = -expm1(-100.0 / 200), sd = sqrt((double)STEPS) * p * (1 - p);

	(void)state;
	start(200, 5);
	for (int i = 0; i < THREADS; i++) {
		taken[i] = malloc(STEPS);
		assert_non_null(taken[i]);
		assert_int_equal(pthread_create(&threads[i], NULL, walk, taken[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	end();
	for (int i = 0; i < THREADS; i++) {
		for (int k = 0; k <= i; k++) {
			for (int lag = i == k; lag < LAGS; lag++) {
				double sum = 0;

				for (int n = lag; n < STEPS; n++)
					sum += (taken[i][n] - p) * (taken[k][n - lag] - p);
				assert_true(fabs(sum) < 6 * sd);
			}
		}
	}
	for (int i = 0; i < THREADS; i++)
		free(taken[i]);
}

static void *short_life(void *argument)
{
	uint64_t *count = argument;

	for (int i = 0; i < 20; i++)
		*count += sampled(50);
	return NULL;
}

/*
 * Threads that end long before their next sample, and others that get their thread states, lose and add nothing. As
 * above the seed does not fix the outcome: 6 standard deviations, 2e-9; a bias of 15 % would be seen.
 */
static void test_threads_that_end_bias_nothing(void **state)
{
	enum { THREADS = 8000 };
	const double p = -expm1(-50.0 / 5000), n = 20.0 * THREADS;
	uint64_t counts[2] = { 0, 0 };

	(void)state;
	start(5000, 11);
	for (int i = 0; i < THREADS; i += 2) {
		pthread_t threads[2];

		for (int k = 0; k < 2; k++)
			assert_int_equal(pthread_create(&threads[k], NULL, short_life, &counts[k]), 0);
		for (int k = 0; k < 2; k++)
			pthread_join(threads[k], NULL);
	}
	end();
	assert_true(fabs((double)(counts[0] + counts[1]) - n * p) < 6 * sqrt(n * p * (1 - p)));
}

static uint64_t fingerprint(uint64_t seed)
{
	uint64_t bits = 0;

	start(1000, seed);
	for (int i = 0; i < 64; i++)
		bits |= (uint64_t)sampled(700) << i;
	end();
	return bits;
}

/* The fast path has charged the thread state and borrowed; before it is seen, a signal handler charges it again,
 * without a borrow. */
static void test_a_handler_that_charges_a_borrowing_state(void **state)
{
	struct thread_state *near;
	uint64_t here;

	(void)state;
	start(1 << 20, 5);
	sampled(1);
	near = &trampolines_shared->near;
	assert_true(near->owner);
	near->remaining = (uint64_t)10 - 64 - 100;
	assert_int_equal(sampler_charge(&(struct hook_call){ .sp = (uint64_t)&here, .thread = near }, 64), 1 << 20);
	assert_true(near->remaining < 1ull << 40);
	end();
}

/*
 * A signal handler within a hook finds the state busy. What it loses is counted, by its probability, and is not made up
 * for by a sample of the next call. 5 standard deviations.
 */
static void test_a_busy_state_loses_its_share_and_no_more(void **state)
{
	enum { N = 40000, SIZE = 300, RATE = 1000 };
	const double p = -expm1(-(double)SIZE / RATE), sd = sqrt(N * p * (1 - p));
	struct thread_state *near;
	uint64_t here, before, taken = 0;

	(void)state;
	start(RATE, 5);
	sampled(1);
	near = &trampolines_shared->near;
	for (int i = 0; i < N; i++) {
		near->busy = (uint64_t)&here + 64; /* of a frame above */
		near->remaining -= SIZE;
		if (near->remaining >> 63)
			assert_int_equal(
				sampler_charge(&(struct hook_call){ .sp = (uint64_t)&here, .thread = near }, SIZE), 0);
		near->busy = 0;
		taken += sampled(SIZE);
	}
	assert_true(fabs((double)fixture_counter(&f, DUMP_COUNTER_lost_busy) - N * p) < 5 * sd);
	assert_true(fabs((double)taken - N * p) < 5 * sd);

	/* Whoever is interrupted may have charged it already: that is left alone. */
	near->busy = (uint64_t)&here + 64; /* of a frame above */
	before = near->remaining = (uint64_t)-20;
	near->remaining -= SIZE;
	assert_int_equal(sampler_charge(&(struct hook_call){ .sp = (uint64_t)&here, .thread = near }, SIZE), 0);
	assert_int_equal(near->remaining, before);
	near->busy = 0;
	end();
}

/* Where a thread gets no state at all, its calls are counted by their probability as well. 5 standard deviations. */
static void test_calls_without_a_state_are_lost_by_their_probability(void **state)
{
	enum { N = 20000, SIZE = 300, RATE = 1000 };
	const double p = -expm1(-(double)SIZE / RATE);

	(void)state;
	start(RATE, 6);
	trampolines_shared->near.busy = 1;
	for (int i = 0; i < THREAD_STATE_ARRAY; i++)
		thread_states[i].busy = 1;
	for (int i = 0; i < N; i++)
		assert_false(sampled(SIZE));
	assert_true(fabs((double)fixture_counter(&f, DUMP_COUNTER_lost_busy) - N * p) < 5 * sqrt(N * p * (1 - p)));
	trampolines_shared->near.busy = 0;
	for (int i = 0; i < THREAD_STATE_ARRAY; i++)
		thread_states[i].busy = 0;
	end();
}

static void test_seed_decides(void **state)
{
	uint64_t a = fingerprint(42);

	(void)state;
	assert_int_equal(fingerprint(42), a);
	assert_int_not_equal(fingerprint(43), a);
	assert_int_not_equal(fingerprint(42ull << 32), a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distances_are_exponential),
		cmocka_unit_test(test_each_size_has_its_probability),
		cmocka_unit_test(test_threads_are_independent),
		cmocka_unit_test(test_threads_that_end_bias_nothing),
		cmocka_unit_test(test_a_handler_that_charges_a_borrowing_state),
		cmocka_unit_test(test_a_busy_state_loses_its_share_and_no_more),
		cmocka_unit_test(test_calls_without_a_state_are_lost_by_their_probability),
		cmocka_unit_test(test_seed_decides),
	};

	return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
