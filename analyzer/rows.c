/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

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
	if (n) {
		row->frames = malloc(n * sizeof *places);
		if (!row->frames)
			return NULL;
		memcpy(row->frames, places, n * sizeof *places);
	}
	if (map_put(&rows->row_of, hash, (uint32_t)rows->count)) {
		free(row->frames);
		return NULL;
	}
	rows->count++;
	return row;
}

void slack_merge(struct slack *into, const struct slack *from)
{
	estimate_merge(&into->sum, &from->sum);
	into->requested += from->requested;
}

void row_merge(struct report_row *into, const struct report_row *from)
{
	for (int f = 0; f < FIGURE_COUNT; f++) {
		estimate_merge(&into->sum[f], &from->sum[f]);
		estimate_merge(&into->old[f], &from->old[f]);
		estimate_merge(&into->plus[f], &from->plus[f]);
		estimate_merge(&into->minus[f], &from->minus[f]);
	}
	slack_merge(&into->slack, &from->slack);
	leak_merge(&into->leak, &from->leak);
	into->lost_live += from->lost_live;
	into->flags |= from->flags;
}

void rows_done(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		free(rows->list[i].frames);
	free(rows->list);
	map_done(&rows->row_of);
	*rows = (struct rows){ 0 };
}
