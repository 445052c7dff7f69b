/* SPDX-License-Identifier: MIT */
#include "input/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void row_done(struct report_row *row)
{
	free(row->frames);
	free(row->change);
	free(row->leak);
	free(row->plan);
}

static int fill(const struct rows *rows, struct report_row *row, const uint64_t *places)
{
	size_t bytes = row->frame_count * sizeof *places;

	row->frames = bytes ? malloc(bytes) : NULL;
	row->change = rows->changes ? calloc(1, sizeof *row->change) : NULL;
	row->leak = rows->leaks ? calloc(1, sizeof *row->leak) : NULL;
	if ((bytes && !row->frames) || (rows->changes && !row->change) || (rows->leaks && !row->leak))
		return -ENOMEM;
	if (bytes)
		memcpy(row->frames, places, bytes);
	return 0;
}

struct report_row *rows_get(struct rows *rows, const uint64_t *places, uint32_t n, bool unknown)
{
	uint64_t hash = map_mix(n + 1u + ((uint64_t)unknown << 32));
	const uint32_t *known;

	for (uint32_t i = 0; i < n; i++)
		hash = map_mix(hash ^ places[i]);
	while ((known = map_find(&rows->row_of, hash))) {
		struct report_row *row = &rows->list[*known];
		if (row->unknown == unknown && row->frame_count == n &&
		    (!n || !memcmp(row->frames, places, n * sizeof *places)))
			return row;
		hash++;
	}
	if (!grow_list(rows->list, rows->count))
		return NULL;
	struct report_row *row = &rows->list[rows->count];
	*row = (struct report_row){ .frame_count = n, .unknown = unknown, .p_value = 1 };
	if (fill(rows, row, places) || map_put(&rows->row_of, hash, (uint32_t)rows->count)) {
		row_done(row);
		return NULL;
	}
	rows->count++;
	return row;
}

bool row_is_empty(const struct report_row *row, const struct row_change *change)
{
	return !row->sum[FIGURE_ALLOCATED_COUNT].samples && !row->sum[FIGURE_LIVE_COUNT].samples &&
	       (!change || (!change->old[FIGURE_ALLOCATED_COUNT].samples && !change->old[FIGURE_LIVE_COUNT].samples));
}

void slack_add(struct slack *slack, uint64_t size, uint64_t usable, double p)
{
	double extra = (double)usable - (double)size;

	if (usable < size || usable > size + (1ull << 40))
		return; /* 0: unknown */
	estimate_add(&slack->sum, extra, p);
	estimate_expect(&slack->sum, p < 1 ? extra / p : 0);
	slack->requested += (double)size / p;
	if (!(slack->smallest > 0) || (double)size < slack->smallest)
		slack->smallest = size ? (double)size : 1;
}

/* At another rate q the variance is the sum of x^2 (1 - q) / q over all blocks, which that of x^2 (1 - q) / (q p) over
 * samples estimates; likewise what is seen. At half of a rate what is missed, 1 - q, is the square of what it was. */
void row_plan_add(struct row_plan *plan, uint64_t size, double x, double square, double p, uint64_t rate)
{
	double weighted = x / p;
	int k = PLAN_RATES - 1;

	while (k > 0 && 1ull << k >= 4 * rate)
		k--;
	plan->value += weighted;
	for (double q = estimate_probability(size, 1ull << k); k > 0 && q < 1; q *= 2 - q, k--) {
		plan->variance[k] += (float)(square / p * (1 - q) / q);
		plan->seen[k] += (float)(weighted * q);
	}
	for (; k >= 0; k--)
		plan->seen[k] += (float)weighted;
}

void slack_merge(struct slack *into, const struct slack *from)
{
	estimate_merge(&into->sum, &from->sum);
	into->requested += from->requested;
	if (from->smallest > 0 && !(into->smallest > 0 && into->smallest <= from->smallest))
		into->smallest = from->smallest;
}

void row_merge_lost(struct estimate_sum into[2], const struct estimate_sum from[2])
{
	for (int f = FIGURE_LIVE_BYTES; f <= FIGURE_LIVE_COUNT; f++)
		estimate_merge(&into[f], &from[f]);
}

static void plan_merge(struct row_plan *into, const struct row_plan *from)
{
	into->value += from->value;
	for (int k = 0; k < PLAN_RATES; k++) {
		into->variance[k] += from->variance[k];
		into->seen[k] += from->seen[k];
	}
}

void row_take_plan(struct report_row *row, struct row_plan **plan)
{
	if (*plan && row->plan) {
		plan_merge(row->plan, *plan);
	} else if (*plan) {
		row->plan = *plan;
		*plan = NULL;
	}
}

static void change_merge(struct row_change *into, const struct row_change *from)
{
	for (int f = 0; f < FIGURE_COUNT; f++) {
		estimate_merge(&into->old[f], &from->old[f]);
		estimate_merge(&into->plus[f], &from->plus[f]);
		estimate_merge(&into->minus[f], &from->minus[f]);
	}
}

void row_merge(struct report_row *into, const struct report_row *from)
{
	for (int f = 0; f < FIGURE_COUNT; f++)
		estimate_merge(&into->sum[f], &from->sum[f]);
	if (into->change && from->change)
		change_merge(into->change, from->change);
	if (into->leak && from->leak)
		leak_merge(into->leak, from->leak);
	slack_merge(&into->slack, &from->slack);
	free_tally_merge(&into->frees, &from->frees);
	into->times.peak[FIGURE_LIVE_BYTES] += from->times.peak[FIGURE_LIVE_BYTES];
	into->times.peak[FIGURE_LIVE_COUNT] += from->times.peak[FIGURE_LIVE_COUNT];
	into->times.lived += from->times.lived;
	for (int side = 0; side < 2; side++)
		if (from->smallest[side] > 0 &&
		    !(into->smallest[side] <= from->smallest[side] && into->smallest[side] > 0))
			into->smallest[side] = from->smallest[side];
	row_merge_lost(into->lost, from->lost);
	into->flags |= from->flags;
}

void rows_done(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		row_done(&rows->list[i]);
	free(rows->list);
	map_done(&rows->row_of);
	*rows = (struct rows){ 0 };
}
