/* SPDX-License-Identifier: MIT */
/* The arithmetic of sampling against libm and against the distributions that it must have. Seeds are fixed. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dump_format.h"
#include "exponential.h"

#define SEED 0x5eed2024ull

static void assert_near(double got, double wanted, double relative)
{
	if (!(fabs(got - wanted) <= relative * fabs(wanted)))
		fail_msg("%.17g instead of %.17g", got, wanted);
}

static void test_log_matches_libm(void **state)
{
	(void)state;
	for (double x = 1e-300; x < 1e300; x *= 1.0173)
		assert_near(exponential_log(x), log(x), 1e-14);
	for (double x = 0.5; x < 2; x += 1e-5)
		assert_true(fabs(exponential_log(x) - log(x)) <= 1e-15);
	assert_true(exponential_log(1) == 0);
}

static void test_expm1_matches_libm(void **state)
{
	(void)state;
	for (double x = 1e-18; x < 700; x *= 1.00713) {
		double rest, p = exponential_expm1_negative(x, &rest);

		assert_near(p, -expm1(-x), 1e-13);
		assert_near(rest, exp(-x), 1e-13);
	}
}

static void test_expm1_at_the_ends(void **state)
{
	double rest;

	(void)state;
	assert_true(exponential_expm1_negative(1e5, &rest) == 1 && rest == 0);
	assert_true(exponential_expm1_negative(0, &rest) == 0 && rest == 1);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: D sqrt(n) > 2.23 has a probability of 1e-4. */
static void test_draw_is_exponential(void **state)
{
	enum { N = 200000 };
	const double mean = 1 << 30; /* large: floor does not matter */
	double *sample = malloc(N * sizeof(*sample)), d = 0;
	uint64_t random = SEED;

	(void)state;
	assert_non_null(sample);
	for (int i = 0; i < N; i++)
		sample[i] = (double)exponential_draw(&random, 1 << 30);
	qsort(sample, N, sizeof(*sample), ascending);
	for (int i = 0; i < N; i++) {
		double f = -expm1(-sample[i] / mean);

		d = fmax(d, fmax(fabs(f - (double)i / N), fabs(f - (double)(i + 1) / N)));
	}
	free(sample);
	assert_true(d * sqrt(N) < 2.23);
}

/* P(distance < S) is 1 - exp(-S/R) for the sizes of allocations; 4.5 standard deviations: 7e-6 each. */
static void test_draw_gives_the_inclusion_probability(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 16, 100, 1000, 4096, 10000 };
	enum { N = 400000, RATE = 4096 };

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		double p = -expm1(-(double)sizes[k] / RATE);
		uint64_t random = SEED + k;
		int taken = 0;

		for (int i = 0; i < N; i++)
			taken += exponential_draw(&random, RATE) < sizes[k];
		assert_true(fabs(taken - N * p) < 4.5 * sqrt(N * p * (1 - p)));
	}
}

static void test_draw_of_rate_one_is_zero(void **state)
{
	uint64_t random = SEED;

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(exponential_draw(&random, 1), 0);
}

static void test_random_next_is_splitmix64(void **state)
{
	uint64_t random = 1234567;

	(void)state;
	assert_true(exponential_random(&random) == 6457827717110365317ull);
	assert_true(exponential_random(&random) == 3203168211198807973ull);
}

static void test_add_sample_adds_the_weights(void **state)
{
	struct dump_stack stack = { 0 };
	double p = -expm1(-100.0 / 65536), q = 1 - p;

	(void)state;
	exponential_add_sample(&stack, 100, 65536);
	assert_true(stack.taken_count == 1 && stack.taken_bytes == 100);
	assert_near(100 + stack.excess_bytes, 100 / p, 1e-13);
	assert_near(1 + stack.excess_count, 1 / p, 1e-13);
	assert_near(stack.variance_bytes, 100.0 * 100 * q / (p * p), 1e-12);
	assert_near(stack.variance_count, q / (p * p), 1e-12);
	exponential_add_sample(&stack, 100, 65536);
	assert_true(stack.taken_count == 2 && stack.taken_bytes == 200);
	assert_near(2 + stack.excess_count, 2 / p, 1e-13);
}

static void test_add_sample_of_rate_one_is_exact(void **state)
{
	struct dump_stack stack = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		exponential_add_sample(&stack, 12345, 1);
	assert_true(stack.taken_bytes == 12345000 && stack.taken_count == 1000);
	assert_true(stack.excess_bytes == 0 && stack.excess_count == 0);
	assert_true(stack.variance_bytes == 0 && stack.variance_count == 0);
}

static void test_add_sample_counts_size_zero_as_one(void **state)
{
	struct dump_stack stack = { 0 };

	(void)state;
	exponential_add_sample(&stack, 0, 1024);
	assert_true(stack.taken_count == 1 && stack.taken_bytes == 0 && stack.excess_bytes == 0);
	assert_near(1 + stack.excess_count, 1 / -expm1(-1.0 / 1024), 1e-13);
}

/* The target's flags, masks and rounding are as before, and do not change the results. */
static void test_floating_point_environment_is_untouched(void **state)
{
	struct dump_stack stack = { 0 }, other = { 0 };
	const int trapped = FE_INEXACT | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW;
	uint64_t random = SEED, same = SEED, distance;

	(void)state;
	distance = exponential_draw(&random, 12345);
	exponential_add_sample(&stack, 100, 65536);
	feclearexcept(FE_ALL_EXCEPT);
	fesetround(FE_UPWARD);
	feenableexcept(trapped);
	const int enabled = fegetexcept(); /* all, or none: not every processor can trap */
	assert_true(enabled == trapped || enabled == 0);
	assert_int_equal(exponential_draw(&same, 12345), distance);
	exponential_add_sample(&other, 100, 65536);
	assert_int_equal(fegetexcept(), enabled);
	fedisableexcept(FE_ALL_EXCEPT);
	assert_int_equal(fetestexcept(FE_ALL_EXCEPT), 0);
	assert_int_equal(fegetround(), FE_UPWARD);
	fesetround(FE_TONEAREST);
	assert_memory_equal(&stack, &other, sizeof(stack));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log_matches_libm),
		cmocka_unit_test(test_expm1_matches_libm),
		cmocka_unit_test(test_expm1_at_the_ends),
		cmocka_unit_test(test_draw_is_exponential),
		cmocka_unit_test(test_draw_gives_the_inclusion_probability),
		cmocka_unit_test(test_draw_of_rate_one_is_zero),
		cmocka_unit_test(test_random_next_is_splitmix64),
		cmocka_unit_test(test_add_sample_adds_the_weights),
		cmocka_unit_test(test_add_sample_of_rate_one_is_exact),
		cmocka_unit_test(test_add_sample_counts_size_zero_as_one),
		cmocka_unit_test(test_floating_point_environment_is_untouched),
	};

	return cmocka_run_group_tests_name("exponential", tests, NULL, NULL);
}
