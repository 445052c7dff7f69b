/* SPDX-License-Identifier: MIT */
/*
 * The tables of docs/statistics.md, in Markdown: coverage_table [HEAPS [CONFIDENCE-PERCENT [SEED]]]. Each cell samples
 * HEAPS heaps whose contents are known and counts how often the interval holds the truth.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "gamma.h"
#include "heap_simulation.h"

#define CLASSES_MAX 50

struct heap_kind {
	const char *name;
	double size;  /* in units of the rate if below 0: -4 is 4 R */
	double sigma; /* 0: one size; above: log-normal with this spread around it */
	double second; /* 0, or half of the bytes are in blocks of this size */
};

static const struct heap_kind kinds[] = {
	{ "16 B", 16, 0, 0 },	  { "256 B", 256, 0, 0 },	{ "4 KiB", 4096, 0, 0 },	  { "R/4", -0.25, 0, 0 },
	{ "R", -1, 0, 0 },	  { "4 R", -4, 0, 0 },		{ "64 R", -64, 0, 0 },	  { "64 B and 4 KiB", 64, 0, 4096 },
	{ "64 B and 4 R", 64, 0, -4 }, { "16 B and R", 16, 0, -1 }, { "4 KiB and R/4", 4096, 0, -0.25 },
	{ "log-normal 100 B, 0.5", 100, 0.5, 0 }, { "log-normal 100 B, 1.0", 100, 1, 0 }, { "log-normal 100 B, 1.8", 100, 1.8, 0 },
	{ "log-normal 1 KiB, 1.2", 1024, 1.2, 0 }, { "log-normal 1 KiB, 1.8", 1024, 1.8, 0 },
};
static const double expected[] = { 1, 3, 10, 100, 1000 };
static const uint64_t rates[] = { 1024, 65536, 524288, 4194304 };

struct cell {
	double bytes, plain, width, z;
	double count, count_plain, count_width;
};

static uint64_t size_at(double size, uint64_t rate)
{
	return (uint64_t)fmax(1, size < 0 ? -size * (double)rate : size);
}

/* A heap of the kind with so many expected samples of bytes (B / R). */
static int make_heap(const struct heap_kind *kind, double samples, uint64_t rate, struct block_class heap[CLASSES_MAX])
{
	double bytes = samples * (double)rate;
	int n = kind->sigma > 0 ? CLASSES_MAX : kind->second != 0 ? 2 : 1;
	double mean = 0;

	for (int i = 0; i < n; i++) {
		double size = kind->sigma > 0 ? kind->size * exp(kind->sigma * normal_quantile((i + 0.5) / n)) : kind->size;
		heap[i].size = size_at(i && kind->second != 0 ? kind->second : size, rate);
		mean += (double)heap[i].size / n;
	}
	for (int i = 0; i < n; i++) {
		double each = kind->sigma > 0 ? bytes / mean / n : bytes / n / (double)heap[i].size;
		heap[i].blocks = (uint64_t)fmax(1, round(each));
	}
	return n;
}

static struct cell run_cell(const struct heap_kind *kind, double samples, uint64_t rate, int heaps, double confidence,
			    struct random_source *random)
{
	struct block_class classes[CLASSES_MAX];
	int n = make_heap(kind, samples, rate, classes);
	double z = normal_quantile(1 - (1 - confidence) / 2);
	struct cell cell = { 0 };
	double sum = 0;
	double square = 0;
	double plain_width = 0;
	double count_plain_width = 0;

	for (int i = 0; i < heaps; i++) {
		struct sampled_heap heap;
		heap_sample(&heap, classes, n, rate, random);
		struct estimate b = estimate_interval(&heap.bytes, confidence);
		struct estimate c = estimate_interval(&heap.count, confidence);
		double t = heap.true_bytes;
		double error = b.value - t;
		cell.bytes += b.low <= t * (1 + 1e-12) && t * (1 - 1e-12) <= b.high;
		cell.count += c.low <= heap.true_count * (1 + 1e-12) && heap.true_count * (1 - 1e-12) <= c.high;
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
	cell.z = spread > 1e-9 * size_at(kind->size, rate) ? sum / sqrt(heaps) / spread : 0;
	cell.bytes /= heaps;
	cell.count /= heaps;
	cell.plain /= heaps;
	cell.count_plain /= heaps;
	cell.count_width = count_plain_width > 0 ? cell.count_width / count_plain_width : NAN;
	cell.width = plain_width > 0 ? cell.width / plain_width : NAN;
	return cell;
}

/* Ratios of widths; where blocks are seen for certain there is no normal interval to compare with. */
static const char *ratio(double width, char text[16])
{
	snprintf(text, 16, "-");
	if (width > 0 && width < 1e5)
		snprintf(text, 16, width < 10 ? "%.2f" : "%.0f", width);
	return text;
}

static void put_cell(const struct heap_kind *kind, double samples, const struct cell *c)
{
	char width[16], count_width[16];

	printf("| %s | %g | %.3f | %.3f | %s | %.3f | %.3f | %s | %+.1f |\n", kind->name, samples, c->bytes, c->plain,
	       ratio(c->width, width), c->count, c->count_plain, ratio(c->count_width, count_width), c->z);
}

static void put_coverage(int heaps, double confidence, struct random_source *random)
{
	double lowest = 1;
	double lowest_count = 1;
	double largest_z = 0;

	printf("| sizes | expected samples | bytes | normal | width | count | normal | width | z |\n|---|---|---|---|---|---|---|---|---|\n");
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
			for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
				struct cell c = run_cell(&kinds[k], expected[i], rates[r], heaps, confidence, random);
				lowest = fmin(lowest, c.bytes);
				lowest_count = fmin(lowest_count, c.count);
				largest_z = fmax(largest_z, fabs(c.z));
				/* All rates are looked at; what they have in common is shown for one. */
				if (rates[r] == 65536)
					put_cell(&kinds[k], expected[i], &c);
			}
		}
	}
	printf("\nAll rates (1k, 64k, 512k, 4M): lowest coverage of bytes %.4f, of counts %.4f, largest |z| of the bias %.1f.\n\n",
	       lowest, lowest_count, largest_z);
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
	put_seen(confidence);
	return 0;
}
