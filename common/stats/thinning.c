/* SPDX-License-Identifier: MIT */
#include "stats/thinning.h"

#include <math.h>
#include <stdlib.h>

#include "stats/estimate.h"
#include "base/sorted.h"
#include "base/order.h"

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* In (0, 1), a multiple of 2^-53 shifted by half of that. */
static double number(const struct thinning_sample *s)
{
	uint64_t hash = mix(mix(s->stamp) ^ s->size);

	hash = mix(hash ^ ((uint64_t)s->stack << 32 | s->tid));
	return ((double)(hash >> 11) + 0.5) * 0x1p-53;
}

double thinning_survival(const struct thinning_sample *s)
{
	double size = s->size ? (double)s->size : 1;
	double rate = -size / log1p(-number(s) * estimate_probability(s->size, s->rate_bytes));

	/* u is less than 1, so it survives its own rate, however that is rounded. */
	return fmax(rate, nextafter((double)s->rate_bytes, INFINITY));
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What becomes of a sample when the largest rate of the thinnings in its life is this one. */
static uint32_t rate_after(const struct thinning_sample *s, uint64_t rate)
{
	if (rate <= s->rate_bytes)
		return s->rate_bytes;
	return rate <= UINT32_MAX && (double)rate < thinning_survival(s) ? (uint32_t)rate : 0;
}

uint32_t thinning_rate(const struct thinning *list, size_t count, const struct thinning_sample *s, uint64_t freed)
{
	uint64_t rate = s->rate_bytes;

	for (size_t i = 0; i < count; i++)
		if (s->stamp <= list[i].stamp && list[i].stamp <= freed && list[i].rate_bytes > rate)
			rate = list[i].rate_bytes;
	return rate_after(s, rate);
}

ORDER_BY(compare_stamps, struct thinning, stamp);

int thinning_index_make(struct thinning_index *index, struct thinning *list, size_t count)
{
	*index = (struct thinning_index){ .list = list, .count = count };
	if (!count)
		return 0;
	qsort(list, count, sizeof *list, compare_stamps);
	index->largest = reallocarray(NULL, count, 2 * sizeof *index->largest);
	if (!index->largest) {
		thinning_index_done(index);
		return -ENOMEM;
	}
	for (size_t i = 2 * count - 1; i; i--) {
		const uint64_t *below = i < count ? &index->largest[2 * i] : NULL;
		index->largest[i] = below ? larger(below[0], below[1]) : list[i - count].rate_bytes;
	}
	return 0;
}

void thinning_index_done(struct thinning_index *index)
{
	free(index->list);
	free(index->largest);
	*index = (struct thinning_index){ 0 };
}

/* The first thinning at this stamp or later. */
static size_t first_at(const struct thinning_index *index, uint64_t stamp)
{
	return SORTED_BELOW(index->list, index->count, stamp, stamp);
}

uint32_t thinning_index_rate(const struct thinning_index *index, const struct thinning_sample *s, uint64_t freed)
{
	uint64_t rate = 0;

	if (!index->count)
		return s->rate_bytes;
	size_t low = index->count + first_at(index, s->stamp);
	size_t high = index->count + (freed == UINT64_MAX ? index->count : first_at(index, freed + 1));
	/* From the leaves up, the nodes that have nothing but leaves of the range. */
	for (; low < high; low /= 2, high /= 2) {
		if (low & 1) {
			rate = larger(rate, index->largest[low]);
			low++;
		}
		if (high & 1) {
			high--;
			rate = larger(rate, index->largest[high]);
		}
	}
	return rate_after(s, rate);
}
