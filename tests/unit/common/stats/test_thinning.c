/* SPDX-License-Identifier: MIT */
/* Thinning by itself: who stays, with which probability, and that nothing of it biases an estimate. Seeds are fixed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stats/estimate.h"
#include "heap_simulation.h"
#include "stats/halves.h"
#include "stats/thinning.h"

static struct thinning_sample sample_of(uint64_t size, uint32_t rate, struct random_source *random)
{
	return (struct thinning_sample){
		.size = size, .stamp = exponential_random(random) >> 1, .stack = 77, .tid = 5, .rate_bytes = rate
	};
}

/* It survives a rate T with the probability p(T) / p(r); 4.5 standard deviations, and one: where nearly all survive,
 * few are few. */
static void test_survival_has_the_right_probability(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 16, 100, 4096, 65536, 1 << 20 };
	static const uint32_t rates[] = { 1, 1000, 65536 };
	enum { N = 20000 };
	struct random_source random = { 1 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (size_t k = 0; k < sizeof rates / sizeof rates[0]; k++)
			for (int steps = 1; steps < 12; steps += 5) {
				double larger = ldexp(rates[k], steps);
				double p = estimate_probability(sizes[i], (uint64_t)larger) /
				           estimate_probability(sizes[i], rates[k]);
				int survived = 0;
				for (int n = 0; n < N; n++) {
					struct thinning_sample s = sample_of(sizes[i], rates[k], &random);
					double survival = thinning_survival(&s);
					assert_true(survival > rates[k]);
					survived += survival > larger;
				}
				if (!(fabs(survived - N * p) <= 4.5 * sqrt(N * p * (1 - p)) + 1))
					fail_msg("%lu bytes, from %u to %.0f: %d survived, not %.1f",
					         (unsigned long)sizes[i], rates[k], larger, survived, N * p);
			}
}

/* Samples that differ in one thing only are decided about independently. */
static void test_survival_depends_on_the_whole_sample(void **state)
{
	struct thinning_sample s = { .size = 100, .stamp = 1ull << 40, .stack = 1000, .tid = 10, .rate_bytes = 1 };
	int kept[4] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 10000; i++) {
		struct thinning_sample next[4] = { s, s, s, s };
		next[0].stamp += i;
		next[1].stack += i;
		next[2].tid += i;
		next[3].stamp += 100ull * i; /* as of a loop */
		for (int k = 0; k < 4; k++)
			kept[k] += thinning_survival(&next[k]) > 144.27; /* p = 1/2 */
	}
	for (int k = 0; k < 4; k++)
		assert_true(abs(kept[k] - 5000) < 225);
}

static void test_rate_follows_who_was_there(void **state)
{
	const struct thinning list[] = { { 1000, 4000 }, { 2000, 16000 }, { 3000, 8000 } };
	struct random_source random = { 2 };

	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct thinning_sample s = sample_of(100 + (uint64_t)i, 1000, &random);
		double survival = thinning_survival(&s);

		s.stamp = s.stamp % 4000;
		survival = thinning_survival(&s);
		uint32_t live = thinning_rate(list, 3, &s, UINT64_MAX);
		uint64_t largest = s.stamp <= 2000 ? 16000 : s.stamp <= 3000 ? 8000 : 0;
		assert_int_equal(live, !largest ? 1000 : survival > (double)largest ? largest : 0);
		/* Freed before any thinning: as it was taken. */
		s.stamp = 500;
		assert_int_equal(thinning_rate(list, 3, &s, 999), 1000);
		survival = thinning_survival(&s);
		assert_int_equal(thinning_rate(list, 3, &s, 1000), survival > 4000 ? 4000 : 0);
		assert_int_equal(thinning_rate(list, 3, &s, 1999), survival > 4000 ? 4000 : 0);
		assert_int_equal(thinning_rate(list, 3, &s, 2000), survival > 16000 ? 16000 : 0);
	}
}

static void test_index_tells_what_the_list_tells(void **state)
{
	struct random_source random = { 7 };

	(void)state;
	for (size_t count = 0; count < 70; count++) {
		struct thinning *list = calloc(count + 1, sizeof *list);
		struct thinning copy[70];
		struct thinning_index index;
		assert_non_null(list);
		for (size_t i = 0; i < count; i++)
			copy[i] = list[i] = (struct thinning){ exponential_random(&random) % 100,
				                               exponential_random(&random) % 100000 };
		assert_int_equal(thinning_index_make(&index, list, count), 0);
		for (int i = 0; i < 300; i++) {
			struct thinning_sample s = { .size = 100,
				                     .stamp = exponential_random(&random) % 102,
				                     .stack = (uint32_t)i,
				                     .rate_bytes = 1000 };
			uint64_t freed = i % 3 ? exponential_random(&random) % 102 : UINT64_MAX - (unsigned)i % 2;
			assert_int_equal(thinning_index_rate(&index, &s, freed), thinning_rate(copy, count, &s, freed));
		}
		thinning_index_done(&index);
	}
}

static void test_rate_leaves_what_has_a_larger_one(void **state)
{
	const struct thinning list[] = { { 1000, 4000 } };
	struct thinning_sample s = { .size = 10, .stamp = 5, .rate_bytes = 4000 };

	(void)state;
	assert_int_equal(thinning_rate(list, 1, &s, UINT64_MAX), 4000);
	s.rate_bytes = 1u << 31;
	assert_int_equal(thinning_rate(list, 1, &s, UINT64_MAX), 1u << 31);
	assert_int_equal(thinning_rate(NULL, 0, &s, UINT64_MAX), 1u << 31);
}

/*
 * A heap of 3000 blocks comes in ten batches, each sampled at the rate in force; whenever more than 200 samples live,
 * the smallest doubling that leaves at most 100 is chosen by looking at who survives, and is the rate from then on. A
 * fifth of the blocks is freed on the way.
 */
static void one_heap(struct random_source *random, const uint64_t *sizes, int kinds, struct estimate_sum *bytes,
                     struct estimate_sum *count, double *true_bytes, double *true_count)
{
	static struct thinning_sample samples[4096];
	static double survival[4096];
	struct thinning list[64];
	uint64_t rate = 64, clock = 0;
	size_t n = 0, thinnings = 0;
	double p[8];

	*bytes = *count = (struct estimate_sum){ 0 };
	*true_bytes = *true_count = 0;
	uint64_t salt = exponential_random(random) >> 8;
	for (int batch = 0; batch < 10; batch++) {
		for (int k = 0; k < kinds; k++)
			p[k] = estimate_probability(sizes[k], rate);
		for (int i = 0; i < 300; i++) {
			unsigned kind = (unsigned)(exponential_random(random) % (unsigned)kinds);
			bool stays = exponential_random(random) % 5 != 0;
			clock++;
			*true_bytes += stays ? (double)sizes[kind] : 0;
			*true_count += stays;
			if (!stays || random_unit(random) >= p[kind])
				continue;
			samples[n] = (struct thinning_sample){ sizes[kind], clock, 1, (uint32_t)salt, (uint32_t)rate };
			survival[n] = thinning_survival(&samples[n]);
			n++;
		}
		/* Next doublings, all at one instant: rates only rise here, so the last one decides. */
		for (size_t limit = 200;; limit = 100) {
			uint64_t last = thinnings ? list[thinnings - 1].stamp : 0;
			size_t live = 0;
			for (size_t i = 0; i < n; i++)
				live += samples[i].stamp > last || survival[i] > (double)rate;
			if (live <= limit)
				break;
			rate *= 2;
			thinnings += last != clock;
			list[thinnings - 1] = (struct thinning){ clock, rate };
		}
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t r = thinning_rate(list, thinnings, &samples[i], UINT64_MAX);
		if (!r)
			continue;
		double q = estimate_probability(samples[i].size, r);
		estimate_add(bytes, (double)samples[i].size, q);
		estimate_add_block(count, q);
	}
	bytes->next = (double)rate;
	estimate_hide(count, rate);
}

static void test_thinning_keeps_estimates_unbiased(void **state)
{
	static const struct {
		const char *name;
		uint64_t sizes[4];
		int kinds;
	} cases[] = { { "64 B", { 64 }, 1 },
		      { "64 B and 512 B", { 64, 512 }, 2 },
		      { "0, 16 B, 256 B, 64 KiB", { 0, 16, 256, 65536 }, 4 } };
	enum { HEAPS = 10000 };
	struct random_source random = { 20240301 };

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		double error[2] = { 0 }, variance[2] = { 0 }, samples = 0;
		int covered[2] = { 0 };
		for (int h = 0; h < HEAPS; h++) {
			struct estimate_sum sum[2];
			double truth[2];
			one_heap(&random, cases[c].sizes, cases[c].kinds, &sum[0], &sum[1], &truth[0], &truth[1]);
			for (int k = 0; k < 2; k++) {
				struct estimate e = estimate_interval(&sum[k], 0.95);
				error[k] += e.value - truth[k];
				variance[k] += (e.value - truth[k]) * (e.value - truth[k]);
				covered[k] += e.low <= truth[k] && truth[k] <= e.high + e.unseen;
			}
			samples += (double)sum[0].samples;
		}
		for (int k = 0; k < 2; k++) {
			double z = error[k] / sqrt(variance[k]);
			if (getenv("VERBOSE"))
				printf("| %s | %s | %.0f | %.3f | %+.1f |\n", cases[c].name, k ? "count" : "bytes",
				       samples / HEAPS, (double)covered[k] / HEAPS, z);
			/* Six z-tests at 4: 4e-4 in all. */
			assert_true(fabs(z) < 4);
		}
		assert_true(covered[0] >= 0.94 * HEAPS);
		/* Blocks below this are promised to be in the number only if one is sampled. */
		if (cases[c].sizes[0] >= ESTIMATE_HIDDEN_BYTES)
			assert_true(covered[1] >= 0.94 * HEAPS);
	}
}

static void assert_part(int found, int of, double p)
{
	assert_true(fabs(found - of * p) <= 4.5 * sqrt(of * p * (1 - p)) + 1);
}

/* A block is in each half with the probability of twice the rate, in both as two samples would have it; each sample is
 * in one of them at least. */
static void test_halves_know_nothing_of_each_other(void **state)
{
	static const uint64_t sizes[] = { 1, 100, 4096, 65536, 1 << 18 };
	enum { N = 20000, AT = 65536 };
	struct random_source random = { 7 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		double p = estimate_probability(sizes[i], AT), q = estimate_probability(sizes[i], 2 * AT);
		int in[3] = { 0 };
		for (int n = 0; n < N; n++) {
			struct thinning_sample s = sample_of(sizes[i], AT, &random);
			uint64_t chooses = half_rate_of(&s, HALF_CHOOSES), tells = half_rate_of(&s, HALF_TELLS);
			assert_true(chooses || tells);
			assert_true((!chooses || chooses == 2 * AT) && (!tells || tells == 2 * AT));
			in[0] += chooses > 0;
			in[1] += tells > 0;
			in[2] += chooses && tells;
		}
		assert_part(in[0], N, q / p);
		assert_part(in[1], N, q / p);
		assert_part(in[2], N, q * q / p);
	}
	struct thinning_sample exact = sample_of(100, 1, &random);
	assert_true(half_rate_of(&exact, HALF_CHOOSES) == 1 && half_rate_of(&exact, HALF_TELLS) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_survival_has_the_right_probability),
		cmocka_unit_test(test_survival_depends_on_the_whole_sample),
		cmocka_unit_test(test_rate_follows_who_was_there),
		cmocka_unit_test(test_index_tells_what_the_list_tells),
		cmocka_unit_test(test_rate_leaves_what_has_a_larger_one),
		cmocka_unit_test(test_thinning_keeps_estimates_unbiased),
		cmocka_unit_test(test_halves_know_nothing_of_each_other),
	};

	return cmocka_run_group_tests_name("thinning", tests, NULL, NULL);
}
