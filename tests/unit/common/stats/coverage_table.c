/* SPDX-License-Identifier: MIT */
/*
 * The tables of docs/plots/coverage.txt, in Markdown: coverage_table [HEAPS [CONFIDENCE-PERCENT [SEED]]]. Each cell
 * samples HEAPS heaps whose contents are known and counts how often the interval holds the truth; of a number of
 * blocks, how often each of the statements about it holds (heap_judge). The first table is the grid that the interval
 * was made with; the second one checks it with sizes that had no part in that: other spreads, mixtures drawn at random,
 * real programs.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats/gamma.h"
#include "heap_simulation.h"
#include "real_sizes.h"

#define CLASSES_MAX 100
#define LOGNORMAL_CLASSES 100
#define TABLE_RATE 65536u
#define MIXTURES 8

struct heap_kind {
	const char *name;
	double size;   /* in units of the rate if below 0: -4 is 4 R */
	double sigma;  /* 0: one size; above: log-normal with this spread around it */
	double second; /* 0, or half of the bytes are in blocks of this size */
};

static const struct heap_kind kinds[] = {
	{ "16 B", 16, 0, 0 },
	{ "256 B", 256, 0, 0 },
	{ "4 KiB", 4096, 0, 0 },
	{ "R/4", -0.25, 0, 0 },
	{ "R", -1, 0, 0 },
	{ "4 R", -4, 0, 0 },
	{ "64 R", -64, 0, 0 },
	{ "64 B and 4 KiB", 64, 0, 4096 },
	{ "64 B and 4 R", 64, 0, -4 },
	{ "16 B and R", 16, 0, -1 },
	{ "4 KiB and R/4", 4096, 0, -0.25 },
	{ "log-normal 100 B, 0.5", 100, 0.5, 0 },
	{ "log-normal 100 B, 1.0", 100, 1, 0 },
	{ "log-normal 100 B, 1.8", 100, 1.8, 0 },
	{ "log-normal 1 KiB, 1.2", 1024, 1.2, 0 },
	{ "log-normal 1 KiB, 1.8", 1024, 1.8, 0 },
};
static const struct heap_kind others[] = {
	{ "2 R", -2, 0, 0 },
	{ "3 KiB and 3 R", 3072, 0, -3 },
	{ "log-normal 60 B, 0.3", 60, 0.3, 0 },
	{ "log-normal 200 B, 0.7", 200, 0.7, 0 },
	{ "log-normal 40 B, 1.2", 40, 1.2, 0 },
	{ "log-normal 300 B, 1.4", 300, 1.4, 0 },
	{ "log-normal 5 KiB, 1.5", 5120, 1.5, 0 },
	{ "log-normal 500 B, 2.2", 500, 2.2, 0 },
};
static const double expected[] = { 1, 3, 10, 100, 1000 };
static const double expected_check[] = { 10, 100, 1000 };
static const uint64_t rates[] = { 1024, TABLE_RATE, 524288, 4194304 };

struct cell {
	double bytes, plain, width, z;
	double count, unseen, all, count_plain, count_width;
	double count_error; /* of the normal interval's mean standard error, against the true one */
};

struct limits {
	double bytes, count, unseen, all, z;
};

static uint64_t size_at(double size, uint64_t rate)
{
	return (uint64_t)fmax(1, size < 0 ? -size * (double)rate : size);
}

/* Takes the numbers of blocks for shares, and makes them so many that this many samples are expected. */
static void fill_heap(struct block_class *heap, const double *shares, int n, double samples, uint64_t rate)
{
	double sampled = 0;

	for (int i = 0; i < n; i++)
		sampled += shares[i] * estimate_probability(heap[i].size, rate);
	for (int i = 0; i < n; i++)
		heap[i].blocks = (uint64_t)fmax(n == 1, round(shares[i] * samples / sampled));
}

static int make_heap(const struct heap_kind *kind, double samples, uint64_t rate, struct block_class heap[CLASSES_MAX])
{
	double shares[CLASSES_MAX];
	int n = kind->sigma > 0 ? LOGNORMAL_CLASSES : kind->second != 0 ? 2 : 1;

	/* Quantiles, of which each has a block. */
	if (kind->sigma > 0)
		n = (int)fmin(n, ceil(samples / estimate_probability((uint64_t)kind->size, rate)));
	for (int i = 0; i < n; i++) {
		double size = kind->sigma > 0 ? kind->size * exp(kind->sigma * stats_normal_quantile((i + 0.5) / n))
		                              : kind->size;
		heap[i].size = size_at(i && kind->second != 0 ? kind->second : size, rate);
		shares[i] = kind->second != 0 ? 1 / (double)heap[i].size : 1;
	}
	fill_heap(heap, shares, n, samples, rate);
	return n;
}

/* Two to ten sizes between 16 bytes and 8 R, log-uniform, each with an exponential share of the bytes. */
static int make_mixture(uint64_t seed, double samples, uint64_t rate, struct block_class heap[CLASSES_MAX])
{
	struct random_source random = { seed };
	double shares[CLASSES_MAX];
	int n = 2 + (int)(exponential_random(&random) % 9);

	for (int i = 0; i < n; i++) {
		heap[i].size = (uint64_t)(16 * exp(random_unit(&random) * log(8 * (double)rate / 16)));
		shares[i] = -log(random_unit(&random)) / (double)heap[i].size;
	}
	fill_heap(heap, shares, n, samples, rate);
	return n;
}

static int make_real(const struct real_sizes *real, double samples, uint64_t rate, struct block_class heap[CLASSES_MAX])
{
	double shares[CLASSES_MAX];

	for (int i = 0; i < real->count; i++) {
		heap[i].size = real->list[i].size;
		shares[i] = (double)real->list[i].blocks;
	}
	fill_heap(heap, shares, real->count, samples, rate);
	return real->count;
}

static struct cell run_cell(const struct block_class *classes, int n, uint64_t rate, int heaps, double confidence,
                            struct random_source *random)
{
	double z = stats_normal_quantile(1 - (1 - confidence) / 2);
	struct cell cell = { 0 };
	double sum = 0;
	double square = 0;
	double plain_width = 0;
	double count_plain_width = 0;
	double count_variance = 0;
	double truth = 0;

	for (int i = 0; i < n; i++) {
		double p = estimate_probability(classes[i].size, rate);
		count_variance += (double)classes[i].blocks * (1 - p) / p;
	}
	for (int i = 0; i < heaps; i++) {
		struct sampled_heap heap;
		heap_sample(&heap, classes, n, rate, random);
		struct estimate b = estimate_interval(&heap.bytes, confidence);
		struct estimate c = estimate_interval(&heap.count, confidence);
		double t = truth = heap.true_bytes;
		double error = b.value - t;
		cell.bytes += b.low <= t * (1 + 1e-12) && t * (1 - 1e-12) <= b.high;
		struct heap_split split = heap_split(classes, n, rate, &heap.count);
		struct heap_verdict verdict = heap_judge(&c, &split, heap.true_count);
		cell.count += verdict.interval;
		cell.unseen += verdict.unseen;
		cell.all += verdict.all;
		cell.count_plain += fabs(c.value - heap.true_count) <= z * c.error + 1e-12 * heap.true_count;
		cell.count_width += c.high - c.low;
		count_plain_width += 2 * z * c.error;
		cell.plain += fabs(error) <= z * b.error + 1e-12 * t;
		cell.width += b.high - b.low;
		plain_width += 2 * z * b.error;
		sum += error;
		square += error * error;
	}
	double spread = sqrt(fmax(0, square / heaps - sum / heaps * (sum / heaps)));
	cell.z = spread > 1e-9 * truth ? sum / sqrt(heaps) / spread : 0;
	cell.bytes /= heaps;
	cell.count /= heaps;
	cell.unseen /= heaps;
	cell.all /= heaps;
	cell.plain /= heaps;
	cell.count_plain /= heaps;
	/* Where all is seen but for less than a hundredth of a block there is no normal interval to compare with. */
	cell.count_width = count_plain_width > 0.01 * heaps ? cell.count_width / count_plain_width : NAN;
	cell.count_error = count_variance > 1e-5 ? count_plain_width / heaps / (2 * z * sqrt(count_variance)) : NAN;
	cell.width = plain_width > 1e-6 * truth * heaps ? cell.width / plain_width : NAN;
	return cell;
}

/* Ratios of widths. */
static const char *ratio(double width, char text[16])
{
	snprintf(text, 16, "-");
	if (width > 0)
		snprintf(text, 16, width < 10 ? "%.2f" : "%.0f", width);
	return text;
}

static void put_cell(const char *name, double samples, const struct cell *c)
{
	char width[16], count_width[16], error[16];

	printf("| %s | %g | %.3f | %.3f | %s | %.3f | %.3f | %s | %s | %+.1f | %.3f | %.3f |\n", name, samples,
	       c->bytes, c->plain, ratio(c->width, width), c->count, c->count_plain, ratio(c->count_width, count_width),
	       ratio(c->count_error, error), c->z, c->unseen, c->all);
}

static void put_heading(void)
{
	printf("| sizes | expected samples | bytes | normal | width | count | normal | width | its error | z | unseen "
	       "| "
	       "all |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

static void worst(struct limits *l, const struct cell *c)
{
	l->bytes = fmin(l->bytes, c->bytes);
	l->count = fmin(l->count, c->count);
	l->unseen = fmin(l->unseen, c->unseen);
	l->all = fmin(l->all, c->all);
	l->z = fmax(l->z, fabs(c->z));
}

static void put_limits(const char *of, const struct limits *l)
{
	printf("\n%s: lowest coverage of bytes %.4f, of counts %.4f, of what is unseen %.4f, of all blocks %.4f, "
	       "largest "
	       "|z| of the bias %.1f.\n\n",
	       of, l->bytes, l->count, l->unseen, l->all, l->z);
}

static void put_coverage(int heaps, double confidence, struct random_source *random)
{
	struct block_class heap[CLASSES_MAX];
	struct limits limits = { 1, 1, 1, 1, 0 };

	put_heading();
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
			for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
				int n = make_heap(&kinds[k], expected[i], rates[r], heap);
				struct cell c = run_cell(heap, n, rates[r], heaps, confidence, random);
				worst(&limits, &c);
				/* All rates are looked at; what they have in common is shown for one. */
				if (rates[r] == TABLE_RATE)
					put_cell(kinds[k].name, expected[i], &c);
			}
		}
	}
	put_limits("All rates (1k, 64k, 512k, 4M)", &limits);
}

static void put_check(int heaps, double confidence, struct random_source *random)
{
	struct block_class heap[CLASSES_MAX];
	struct limits limits = { 1, 1, 1, 1, 0 };
	char name[40];

	put_heading();
	for (size_t k = 0; k < sizeof others / sizeof others[0] + MIXTURES + sizeof real_sizes / sizeof real_sizes[0];
	     k++) {
		for (size_t i = 0; i < sizeof expected_check / sizeof expected_check[0]; i++) {
			size_t j = k;
			int n;
			if (j < sizeof others / sizeof others[0]) {
				n = make_heap(&others[j], expected_check[i], TABLE_RATE, heap);
				snprintf(name, sizeof name, "%s", others[j].name);
			} else if ((j -= sizeof others / sizeof others[0]) < MIXTURES) {
				n = make_mixture(j + 1, expected_check[i], TABLE_RATE, heap);
				snprintf(name, sizeof name, "mixture %zu (%d sizes)", j + 1, n);
			} else {
				j -= MIXTURES;
				n = make_real(&real_sizes[j], expected_check[i], TABLE_RATE, heap);
				snprintf(name, sizeof name, "%s", real_sizes[j].name);
			}
			struct cell c = run_cell(heap, n, TABLE_RATE, heaps, confidence, random);
			worst(&limits, &c);
			put_cell(name, expected_check[i], &c);
		}
	}
	put_limits("Checked", &limits);
}

static void put_seen(double confidence)
{
	printf("\n| leak, in units of R | chance to see it |\n|---|---|\n");
	for (double b = 0.1; b < 8; b = b < 0.25 ? 0.25 : b * 2)
		printf("| %g | %.3f |\n", b, -expm1(-b));
	printf("| %.2f | %.3f |\n", estimate_detection_limit(1, confidence), confidence);
	printf("\n| stack of | 64k | 512k | 4M |\n|---|---|---|---|\n");
	for (double b = 1 << 20; b < 1e10; b *= 8) {
		printf("| %g MiB |", b / (1 << 20));
		for (size_t r = 1; r < sizeof rates / sizeof rates[0]; r++)
			printf(" %.1f %% |", 100 * sqrt((double)rates[r] / b));
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	int heaps = argc > 1 ? atoi(argv[1]) : 2000;
	double confidence = argc > 2 ? atof(argv[2]) / 100 : 0.95;
	struct random_source random = { argc > 3 ? strtoull(argv[3], NULL, 0) : 1 };

	if (heaps < 1 || !(confidence > 0 && confidence < 1)) {
		fprintf(stderr, "usage: coverage_table [HEAPS [CONFIDENCE-PERCENT [SEED]]]\n");
		return 64;
	}
	put_coverage(heaps, confidence, &random);
	put_check(heaps, confidence, &random);
	put_seen(confidence);
	return 0;
}
