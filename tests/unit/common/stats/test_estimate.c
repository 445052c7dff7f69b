/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/estimate.h"
#include "stats/gamma.h"

static void assert_close(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("%.17g is not %.17g", got, want);
}

static void test_probability_of_sizes(void **state)
{
	(void)state;
	assert_true(estimate_probability(0, 1) == 1 && estimate_probability(123, 1) == 1);
	assert_close(estimate_probability(65536, 65536), 1 - exp(-1), 1e-15);
	/* The naive 1 - exp(-x) would lose ten digits here. */
	assert_close(estimate_probability(1, 1ull << 40), 0x1p-40, 1e-11);
	assert_true(estimate_probability(0, 4096) == estimate_probability(1, 4096));
	assert_true(estimate_probability(1ull << 50, 4096) == 1);
}

static void test_interval_is_exact_at_rate_1(void **state)
{
	struct estimate_sum sum = { 0 };
	struct estimate_sum count = { 0 };

	(void)state;
	for (int i = 1; i <= 1000; i++)
		estimate_add(&sum, i, estimate_probability((uint64_t)i, 1));
	struct estimate x = estimate_interval(&sum, 0.95);
	assert_true(x.value == 500500 && x.low == 500500 && x.high == 500500 && x.error == 0);
	assert_int_equal(sum.samples, 1000);
	for (int i = 1; i <= 1000; i++)
		estimate_add_block(&count, estimate_probability((uint64_t)i, 1));
	estimate_hide(&count, 1);
	x = estimate_interval(&count, 0.95);
	assert_true(x.value == 1000 && x.low == 1000 && x.high == 1000 && x.error == 0);
}

/* One sample of weight R with w = R is one event of a Poisson process: Garwood's interval [0.0253, 5.572]. */
static void test_interval_of_equal_weights_is_garwoods(void **state)
{
	static const struct {
		int n;
		double low, high;
	} garwood[] = { { 1, 0.025317807984, 5.571643390938 },
		        { 3, 0.618672122804, 8.767273072120 },
		        { 10, 4.795388699917, 18.390356042122 } };

	(void)state;
	for (size_t i = 0; i < sizeof garwood / sizeof garwood[0]; i++) {
		/* v = n w^2 in the limit of a small p. */
		struct estimate_sum sum = {
			.value = garwood[i].n, .variance = garwood[i].n, .next = 1, .samples = (uint64_t)garwood[i].n
		};
		struct estimate x = estimate_interval(&sum, 0.95);
		assert_close(x.low, garwood[i].low, 1e-9);
		assert_close(x.high, garwood[i].high, 1e-9);
	}
}

static void test_interval_never_below_what_was_seen(void **state)
{
	struct estimate_sum sum = { .next = 65536 };

	(void)state;
	for (int i = 0; i < 3; i++)
		estimate_add(&sum, 200000, estimate_probability(200000, 65536));
	struct estimate x = estimate_interval(&sum, 0.95);
	assert_true(x.low >= 600000 && x.low <= x.value && x.value <= x.high);
}

static void test_interval_without_a_sample(void **state)
{
	struct estimate_sum sum = { .next = 65536 };
	struct estimate x = estimate_interval(&sum, 0.95);

	(void)state;
	assert_true(x.value == 0 && x.low == 0);
	assert_close(x.high, -log(0.025) * 65536, 1e-12);
	assert_close(estimate_detection_limit(65536, 0.95), 2.995732273553991 * 65536, 1e-12);
	sum.next = 0;
	x = estimate_interval(&sum, 0.95);
	assert_true(x.high == 0);
}

static void test_interval_grows_with_confidence(void **state)
{
	struct estimate_sum sum = { .next = 4096 };
	double width = 0;

	(void)state;
	for (int i = 0; i < 20; i++)
		estimate_add(&sum, 100, estimate_probability(100, 4096));
	for (double c = 0.5; c < 0.9999; c += 0.05) {
		struct estimate x = estimate_interval(&sum, c);
		assert_true(x.high - x.low > width);
		width = x.high - x.low;
	}
}

static void test_merge_adds_variances(void **state)
{
	struct estimate_sum a = { .next = 10 };
	struct estimate_sum b = { .next = 20 };
	struct estimate_sum whole = { .next = 20 };

	(void)state;
	for (int i = 0; i < 10; i++) {
		estimate_add(i % 2 ? &a : &b, 100 + i, 0.3);
		estimate_add(&whole, 100 + i, 0.3);
	}
	estimate_merge(&a, &b);
	assert_close(a.value, whole.value, 1e-14);
	assert_close(a.variance, whole.variance, 1e-14);
	assert_true(a.seen == whole.seen && a.samples == whole.samples && a.next == 20);
}

/* An upper end of a count is about the sizes that samples show; what may be below them is said beside it. */
static void test_count_says_what_may_be_unseen(void **state)
{
	double p = estimate_probability(4096, 524288);
	double hidden = 1 / estimate_probability(ESTIMATE_HIDDEN_BYTES, 524288);
	struct estimate_sum sum = { 0 };

	(void)state;
	/* Without a sample it is about blocks of any size, and nothing else is unseen. */
	estimate_hide(&sum, 524288);
	struct estimate x = estimate_interval(&sum, 0.95);
	assert_close(x.high, -log(0.025) * hidden, 1e-3);
	assert_true(x.low == 0 && x.unseen == 0);
	/* Where another sample has told the size: about that one. */
	sum.next = 1 / p;
	x = estimate_interval(&sum, 0.95);
	assert_close(x.high, -log(0.025) / p, 1e-2);
	assert_true(x.unseen == ceil(-log(0.05) * hidden) - 1);
	sum.next = 0;
	for (int n = 1; n <= 1000; n++) {
		estimate_add_block(&sum, p);
		x = estimate_interval(&sum, 0.95);
		assert_true(x.high <= (n + 1 + 2.3 + 2.5 * sqrt(n)) / p);
		assert_true(x.unseen == ceil(-log(0.05) * hidden) - 1);
	}
	assert_true(estimate_interval(&sum, 0.99).unseen == ceil(-log(0.01) * hidden) - 1);
	/* As small as any that may be hidden: nothing is below. */
	estimate_add_block(&sum, estimate_probability(ESTIMATE_HIDDEN_BYTES, 524288));
	assert_true(estimate_interval(&sum, 0.95).unseen == 0);
	estimate_add_block(&sum, estimate_probability(1, 524288));
	assert_true(estimate_interval(&sum, 0.95).unseen == 0);
	/* All that are sampled are certain to be: none of that size is missing, smaller ones may be. */
	struct estimate_sum large = { 0 };
	estimate_hide(&large, 524288);
	estimate_add_block(&large, estimate_probability(1ull << 50, 524288));
	x = estimate_interval(&large, 0.95);
	assert_true(x.low == 1 && x.high == 1 && !x.exact && x.unseen > 0);
	/* Of bytes nothing is unseen beside the interval. */
	struct estimate_sum bytes = { .next = 524288 };
	estimate_add(&bytes, 4096, p);
	assert_true(estimate_interval(&bytes, 0.95).unseen == 0);
}

/* Which sizes a merged count is about: those of its samples, and those known otherwise only where it has none. */
static void test_merged_counts_know_the_sizes_of_samples(void **state)
{
	double p = estimate_probability(4096, 65536);
	struct estimate_sum none = { .next = 1000 };
	struct estimate_sum some = { 0 };

	(void)state;
	estimate_hide(&none, 65536);
	estimate_hide(&some, 65536);
	estimate_add_block(&some, p);
	for (int order = 0; order < 2; order++) {
		struct estimate_sum sum = { 0 };
		estimate_merge(&sum, order ? &none : &some);
		assert_true(sum.next == (order ? 1000 : 1 / p));
		estimate_merge(&sum, order ? &some : &none);
		assert_true(sum.next == 1 / p && sum.hidden == some.hidden && sum.samples == 1);
		estimate_merge(&sum, &none);
		assert_true(sum.next == 1 / p);
	}
	struct estimate_sum bytes = { .next = 4096, .samples = 3 };
	struct estimate_sum other = { .next = 65536 };
	estimate_merge(&bytes, &other);
	assert_true(bytes.next == 65536); /* that a sample of the other would have weighed more is known all the same */
}

/* P(X <= n), X binomial (blocks, p). */
static double binomial_below(int blocks, int n, double p)
{
	double sum = 0;

	for (int k = 0; k <= n && k <= blocks; k++)
		sum += exp(lgamma(blocks + 1) - lgamma(k + 1) - lgamma(blocks - k + 1) + k * log(p) +
		           (blocks - k) * log1p(-p));
	return sum;
}

/*
 * Of blocks of one size the interval is that of Clopper and Pearson (1934): the numbers of blocks under which this few
 * samples, or this many, are not too unlikely. Whole numbers, up to one block or three hundredths of the width.
 */
static void test_count_of_alike_blocks_is_clopper_pearsons(void **state)
{
	static const double sizes[] = { 0.05, 0.3, 1, 2, 4, 8 };
	static const int samples[] = { 1, 2, 5, 10, 30, 100 };
	const double tail = 0.025;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		double p = estimate_probability((uint64_t)(sizes[i] * 65536), 65536);
		for (size_t k = 0; k < sizeof samples / sizeof samples[0]; k++) {
			int n = samples[k];
			int low = n, high = n;
			while (1 - binomial_below(low, n - 1, p) < tail)
				low++;
			while (binomial_below(high + 1, n, p) >= tail)
				high++;
			struct estimate_sum sum = { 0 };
			estimate_hide(&sum, 65536);
			for (int j = 0; j < n; j++)
				estimate_add_block(&sum, p);
			struct estimate x = estimate_interval(&sum, 0.95);
			double room = fmax(1, 0.03 * (high - low));
			if (!(fabs(x.low - low) <= room) || !(fabs(x.high - high) <= room))
				fail_msg("%d samples with p = %g: %g .. %g, not %d .. %d", n, p, x.low, x.high, low,
				         high);
			assert_true(x.high == floor(x.high) || x.high == x.value);
		}
	}
}

/* Sums as they come from a damaged or an enormous dump give finite numbers in order. */
static void test_interval_of_extreme_sums(void **state)
{
	static const double values[] = { 0, 1e-300, 1, 1e18, 1e30 };

	(void)state;
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 5; k++)
			for (int w = 0; w < 5; w++) {
				struct estimate_sum sum = {
					.value = values[i], .variance = values[k], .next = values[w], .samples = 1
				};
				struct estimate x = estimate_interval(&sum, 0.95);
				assert_true(x.low <= x.value && x.value <= x.high && isfinite(x.high) && x.low >= 0);
				sum.hidden = values[(i + k) % 5];
				x = estimate_interval(&sum, 0.95);
				assert_true(x.low <= x.value && x.value <= x.high && isfinite(x.high) && x.low >= 0);
				assert_true(isfinite(x.unseen) && x.unseen >= 0);
			}
}

/* A stack that holds the lower end L shows so many samples with the part L / whole of the error; as large as the whole,
 * with all of it. */
static void test_listed_lower_ends_share_the_error(void **state)
{
	static const int counts[] = { 2, 5, 20, 200, 2000 };
	static const double wholes[] = { 2000, 1e6 };
	const double rate = 1 << 20;

	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		for (size_t k = 0; k < sizeof wholes / sizeof wholes[0]; k++) {
			struct estimate_sum sum = { .next = rate };
			double p = estimate_probability(1, (uint64_t)rate), whole = fmax(wholes[k], counts[i]);
			for (int n = 0; n < counts[i]; n++)
				estimate_add(&sum, 1, p);
			double share = estimate_listed_share(&sum, 0.95, whole * rate);
			double low = estimate_interval_listed(&sum, 0.95, share).low / rate;
			assert_true(low > 0 && low < estimate_interval(&sum, 0.95).low / rate * (1 + 1e-9));
			if (low * rate > 2 * sum.seen)
				assert_true(fabs(gamma_p(counts[i], low) / (0.025 * low / whole) - 1) < 0.05);
		}
	struct estimate_sum one = { .value = 40 * rate, .variance = 40 * rate * rate, .seen = 40, .next = rate };
	assert_true(estimate_interval_listed(&one, 0.95, 1).low == estimate_interval(&one, 0.95).low);
	/* One sample of many says no more than itself. */
	one = (struct estimate_sum){ .value = rate, .variance = rate * rate, .seen = 64, .next = rate };
	assert_true(estimate_interval_listed(&one, 0.95, estimate_listed_share(&one, 0.95, 1e4 * rate)).low == 64);
	one = (struct estimate_sum){ .value = 10, .seen = 10 };
	assert_true(estimate_listed_share(&one, 0.95, 100) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probability_of_sizes),
		cmocka_unit_test(test_interval_is_exact_at_rate_1),
		cmocka_unit_test(test_interval_of_equal_weights_is_garwoods),
		cmocka_unit_test(test_interval_never_below_what_was_seen),
		cmocka_unit_test(test_interval_without_a_sample),
		cmocka_unit_test(test_interval_grows_with_confidence),
		cmocka_unit_test(test_merge_adds_variances),
		cmocka_unit_test(test_count_says_what_may_be_unseen),
		cmocka_unit_test(test_merged_counts_know_the_sizes_of_samples),
		cmocka_unit_test(test_count_of_alike_blocks_is_clopper_pearsons),
		cmocka_unit_test(test_interval_of_extreme_sums),
		cmocka_unit_test(test_listed_lower_ends_share_the_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
