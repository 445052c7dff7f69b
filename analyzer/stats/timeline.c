/* SPDX-License-Identifier: MIT */
#include "stats/timeline.h"

#include <math.h>
#include <stdlib.h>

#include "base/sorted.h"

#define MILLISECOND 1000000u
#define ROUND_ABOVE (10 * MILLISECOND) /* distances below this are too short for whole milliseconds */

int timeline_init(struct timeline *t, size_t count, uint64_t duration_ns)
{
	uint64_t unit = duration_ns / count >= ROUND_ABOVE ? MILLISECOND : 1;

	*t = (struct timeline){ .points = calloc(count, sizeof *t->points) };
	if (!t->points)
		return -ENOMEM;
	t->count = count;
	for (size_t i = 0; i < count; i++) {
		double part = (double)duration_ns * (double)(i + 1) / (double)count;
		uint64_t ns = i + 1 == count ? duration_ns : (uint64_t)part;
		t->points[i].ns = ns % unit ? ns - ns % unit + unit : ns;
	}
	return 0;
}

void timeline_clear(struct timeline *t)
{
	for (size_t i = 0; i < t->count; i++)
		t->points[i] = (struct timeline_point){ .ns = t->points[i].ns, .stamp = t->points[i].stamp };
}

size_t timeline_find(const struct timeline *t, uint64_t stamp)
{
	return SORTED_BELOW(t->points, t->count, stamp, stamp);
}

/* With the last part of a block its sample goes. */
void timeline_add(struct timeline *t, uint64_t size, double p, uint64_t born, uint64_t freed, double rest)
{
	size_t first = timeline_find(t, born);
	size_t end = freed ? timeline_find(t, freed) : t->count;

	if (first == t->count)
		return;
	estimate_add_part(&t->points[first].allocated, (double)size, p, rest);
	if (first >= end)
		return;
	estimate_add_part(&t->points[first].live, (double)size, p, rest);
	if (end < t->count)
		estimate_add_part(&t->points[end].gone, (double)size, p, rest);
}

void timeline_finish(struct timeline *t, uint64_t rate, uint64_t whole_since)
{
	struct estimate_sum sum = { 0 };

	for (size_t i = 0; i < t->count; i++) {
		struct timeline_point *point = &t->points[i];
		estimate_merge(&sum, &point->live);
		sum.samples -= point->gone.samples;
		sum.value -= point->gone.value;
		sum.variance = fmax(0, sum.variance - point->gone.variance);
		sum.seen -= point->gone.seen;
		if (!sum.samples) /* without what rounding has left */
			sum = (struct estimate_sum){ 0 };
		point->live = sum;
		point->live.next = point->allocated.next = rate > 1 ? (double)rate : 0;
		point->incomplete = point->stamp < whole_since;
	}
}

const struct timeline_point *timeline_peak(const struct timeline *t)
{
	const struct timeline_point *peak = t->points;

	for (size_t i = 1; i < t->count; i++)
		if (t->points[i].live.value > peak->live.value)
			peak = &t->points[i];
	return peak;
}

void timeline_done(struct timeline *t)
{
	free(t->points);
	*t = (struct timeline){ 0 };
}
