/* SPDX-License-Identifier: MIT */
/*
 * Of simulated heaps, the nominal 95 % interval of bytes holds the truth in at least 94 %, in every cell of a small
 * grid, and the estimate has no bias. So do the three statements about a number of blocks (heap_judge). HEAPS per cell
 * with fixed seeds: a cell whose coverage is truly 95 % shows less than 94 % with probability 2e-3 if the seeds change,
 * and the bias test is at 5 standard errors. From 100 samples of alike blocks on intervals are not more than a tenth
 * wider than the normal one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stats/gamma.h"
#include "heap_simulation.h"
#include "real_sizes.h"

#define HEAPS 4000
#define RATE 65536u

struct cell {
	double bytes_covered, count_covered, unseen_covered, all_covered;
	double z;            /* of the mean estimate of bytes against the truth */
	double width, plain; /* mean widths: of the interval of bytes, of the normal one */
	double count_width, count_plain;
};

static struct cell run_cell(const struct block_class *classes, int n, uint64_t seed)
{
	struct random_source random = { seed };
	struct cell cell = { 0 };
	double sum = 0;
	double square = 0;
	double truth = 0;

	for (int i = 0; i < HEAPS; i++) {
		struct sampled_heap heap;
		heap_sample(&heap, classes, n, RATE, &random);
		struct estimate b = estimate_interval(&heap.bytes, 0.95);
		struct estimate c = estimate_interval(&heap.count, 0.95);
		truth = heap.true_bytes;
		cell.bytes_covered += b.low <= truth * (1 + 1e-12) && truth * (1 - 1e-12) <= b.high;
		struct heap_split split = heap_split(classes, n, RATE, &heap.count);
		struct heap_verdict v = heap_judge(&c, &split, heap.true_count);
		cell.count_covered += v.interval;
		cell.unseen_covered += v.unseen;
		cell.all_covered += v.all;
		cell.width += b.high - b.low;
		cell.plain += 2 * 1.959963984540054 * b.error;
		cell.count_width += c.high - c.low;
		cell.count_plain += 2 * 1.959963984540054 * c.error;
		sum += b.value - truth;
		square += (b.value - truth) * (b.value - truth);
	}
	double spread = sqrt(fmax(0, square / HEAPS - sum / HEAPS * (sum / HEAPS)));
	/* Where p rounds to 1 every heap gives the truth but for the rounding of the sums. */
	cell.z = spread > 1e-9 * truth ? sum / HEAPS / (spread / sqrt(HEAPS)) : sum / HEAPS / (1e-6 * truth);
	cell.bytes_covered /= HEAPS;
	cell.count_covered /= HEAPS;
	cell.unseen_covered /= HEAPS;
	cell.all_covered /= HEAPS;
	if (getenv("VERBOSE"))
		printf("%4d classes, %8llu x %8llu: bytes %.4f count %.4f %.4f %.4f z %+.1f widths %.3f %.3f\n", n,
		       (unsigned long long)classes[0].blocks, (unsigned long long)classes[0].size, cell.bytes_covered,
		       cell.count_covered, cell.unseen_covered, cell.all_covered, cell.z,
		       cell.plain > 0 ? cell.width / cell.plain : 0,
		       cell.count_plain > 0 ? cell.count_width / cell.count_plain : 0);
	return cell;
}

/* That all blocks are within low and high + unseen may be missed in 10 % of the worst heaps; these are not among them.
 */
static void assert_covers(const struct cell *cell)
{
	assert_true(cell->bytes_covered >= 0.94);
	assert_true(cell->count_covered >= 0.94);
	assert_true(cell->unseen_covered >= 0.94);
	assert_true(cell->all_covered >= 0.94);
}

static void test_interval_covers_blocks_of_one_size(void **state)
{
	static const uint64_t sizes[] = { 16, 256, 4096, RATE / 4, RATE, 2 * RATE, 4 * RATE, 16 * RATE, 64 * RATE };
	static const double expected[] = { 1, 3, 10, 100, 1000 };

	(void)state;
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
			double p = estimate_probability(sizes[s], RATE);
			struct block_class heap = { sizes[s], (uint64_t)fmax(1, round(expected[k] / p)) };
			struct cell cell = run_cell(&heap, 1, 1000 * s + k);
			assert_covers(&cell);
			assert_true(fabs(cell.z) < 5);
			/* Of a number of blocks, or one block wider: it is a whole number. */
			if (expected[k] >= 100 && sizes[s] <= RATE)
				assert_true(cell.width < 1.10 * cell.plain);
			if (expected[k] >= 100)
				assert_true(cell.count_width < fmax(1.10 * cell.count_plain, cell.count_plain + HEAPS));
		}
	}
}

/* Half of the bytes in small blocks, half in larger ones. */
static void test_interval_covers_mixtures(void **state)
{
	static const uint64_t pairs[][2] = {
		{ 64, 4096 }, { 64, RATE / 4 }, { 64, 4 * RATE }, { 1024, RATE }, { 4096, 3 * RATE }
	};
	static const double expected[] = { 2, 6, 20, 200 };

	(void)state;
	for (size_t s = 0; s < sizeof pairs / sizeof pairs[0]; s++) {
		for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
			double half = expected[k] * RATE / 2;
			struct block_class heap[2] = {
				{ pairs[s][0], (uint64_t)(half / (double)pairs[s][0]) },
				{ pairs[s][1], (uint64_t)fmax(1, round(half / (double)pairs[s][1])) },
			};
			struct cell cell = run_cell(heap, 2, 500 + 1000 * s + k);
			assert_covers(&cell);
			assert_true(fabs(cell.z) < 5);
		}
	}
}

/* Log-normal sizes around 100 bytes, as real programs have them; the classes are quantiles. */
static void test_interval_covers_lognormal_sizes(void **state)
{
	enum { CLASSES = 50 };
	static const double sigmas[] = { 0.5, 1, 1.8 };
	static const double expected[] = { 1, 3, 10, 100, 1000 };

	(void)state;
	for (size_t s = 0; s < sizeof sigmas / sizeof sigmas[0]; s++) {
		for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
			struct block_class heap[CLASSES];
			double mean = 0;
			for (int i = 0; i < CLASSES; i++) {
				double u = (i + 0.5) / CLASSES;
				heap[i].size = (uint64_t)ceil(100 * exp(sigmas[s] * stats_normal_quantile(u)));
				mean += (double)heap[i].size / CLASSES;
			}
			for (int i = 0; i < CLASSES; i++)
				heap[i].blocks = (uint64_t)ceil(expected[k] * RATE / mean / CLASSES);
			struct cell cell = run_cell(heap, CLASSES, 77 + 1000 * s + k);
			assert_covers(&cell);
			assert_true(fabs(cell.z) < 5);
		}
	}
}

/* A third of the blocks is recorded at each of three rates, as where the governor changes it: every sum knows them all.
 */
static void test_interval_covers_changes_of_rate(void **state)
{
	static const uint64_t rates[] = { RATE / 8, RATE, RATE * 8 };
	static const uint64_t sizes[][2] = { { 16, 16 }, { 500, 500 }, { 64, 4096 }, { 4096, RATE } };
	static const double expected[] = { 6, 20, 200 };

	(void)state;
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
			struct random_source random = { 99 + 100 * s + k };
			int bytes_covered = 0;
			int count_covered = 0;
			int unseen_covered = 0;
			int all_covered = 0;
			double sum = 0;
			double square = 0;
			for (int i = 0; i < HEAPS; i++) {
				struct sampled_heap all = { 0 };
				struct block_class heap[3][2];
				for (int r = 0; r < 3; r++) {
					struct sampled_heap part;
					for (int c = 0; c < 2; c++)
						heap[r][c] = (struct block_class){ sizes[s][c],
							                           (uint64_t)(expected[k] * RATE / 6 /
							                                      (double)sizes[s][c]) };
					heap_sample(&part, heap[r], 2, rates[r], &random);
					estimate_merge(&all.bytes, &part.bytes);
					estimate_merge(&all.count, &part.count);
					all.true_bytes += part.true_bytes;
					all.true_count += part.true_count;
				}
				struct estimate b = estimate_interval(&all.bytes, 0.95);
				struct estimate c = estimate_interval(&all.count, 0.95);
				bytes_covered += b.low <= all.true_bytes && all.true_bytes <= b.high;
				struct heap_split split = { 0, 0 };
				for (int r = 0; r < 3; r++) {
					struct heap_split part = heap_split(heap[r], 2, rates[r], &all.count);
					split.shown += part.shown;
					split.hidden += part.hidden;
				}
				struct heap_verdict v = heap_judge(&c, &split, all.true_count);
				count_covered += v.interval;
				unseen_covered += v.unseen;
				all_covered += v.all;
				sum += c.value - all.true_count;
				square += (c.value - all.true_count) * (c.value - all.true_count);
			}
			double z = sum / sqrt(square);
			if (getenv("VERBOSE"))
				printf("| %llu and %llu B | %g | %.3f | %.3f | %.3f | %.3f | %+.1f |\n",
				       (unsigned long long)sizes[s][0], (unsigned long long)sizes[s][1], expected[k],
				       (double)bytes_covered / HEAPS, (double)count_covered / HEAPS,
				       (double)unseen_covered / HEAPS, (double)all_covered / HEAPS, z);
			assert_true(bytes_covered >= 0.94 * HEAPS && count_covered >= 0.94 * HEAPS && fabs(z) < 5);
			assert_true(unseen_covered >= 0.94 * HEAPS && all_covered >= 0.94 * HEAPS);
		}
	}
}

/* What hidden blocks may be, against the worst there is: blocks of the smallest size beside others that all are
 * sampled. One more than is said stays unseen in 5 % of heaps; as many as are said, in any number, in none. */
static void test_unseen_blocks_are_as_many_as_said(void **state)
{
	double said = -log(0.05) / estimate_probability(ESTIMATE_HIDDEN_BYTES, RATE);

	(void)state;
	for (int more = 0; more < 2; more++) {
		const struct block_class heap[] = { { ESTIMATE_HIDDEN_BYTES, (uint64_t)said + (uint64_t)more },
			                            { 8 * RATE, 100 } };
		struct cell cell = run_cell(heap, 2, 31 + (uint64_t)more);
		assert_true(more ? cell.unseen_covered > 0.94 && cell.unseen_covered < 0.96 : cell.unseen_covered == 1);
		/* Both together: 5 % and 2.5 % may be missed above, no heap more than that. */
		assert_true(cell.count_covered >= 0.94 && cell.all_covered >= 0.925 - 0.01);
	}
}

/* Sizes as a stack of a real program has them, most of whose blocks are hardly ever sampled. */
static void test_statements_hold_for_real_sizes(void **state)
{
	static const double expected[] = { 1, 3, 10, 100, 1000 };
	enum { KINDS = sizeof real_sizes / sizeof real_sizes[0] };

	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
			struct block_class heap[100];
			int n = real_sizes[k].count;
			double sampled = 0;
			assert_true(n <= 100);
			for (int c = 0; c < n; c++)
				sampled += (double)real_sizes[k].list[c].blocks *
				           estimate_probability(real_sizes[k].list[c].size, RATE);
			for (int c = 0; c < n; c++)
				heap[c] = (struct block_class){ real_sizes[k].list[c].size,
					                        (uint64_t)round((double)real_sizes[k].list[c].blocks *
					                                        expected[i] / sampled) };
			struct cell cell = run_cell(heap, n, 7 + 10 * k + i);
			assert_covers(&cell);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interval_covers_blocks_of_one_size),
		cmocka_unit_test(test_interval_covers_mixtures),
		cmocka_unit_test(test_interval_covers_lognormal_sizes),
		cmocka_unit_test(test_interval_covers_changes_of_rate),
		cmocka_unit_test(test_unseen_blocks_are_as_many_as_said),
		cmocka_unit_test(test_statements_hold_for_real_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
