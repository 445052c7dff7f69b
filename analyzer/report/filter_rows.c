/* SPDX-License-Identifier: MIT */
#include "report/filter_rows.h"

#include <string.h>

#include "base/index_list.h"
#include "report/stack_places.h"

static void drop_rows(struct rows *rows)
{
	size_t left = 0;

	for (size_t i = 0; i < rows->count; i++) {
		struct report_row *row = &rows->list[i];
		if (row->out || row_is_empty(row, row->change))
			row_done(row);
		else
			rows->list[left++] = *row;
	}
	rows->count = left;
	map_done(&rows->row_of); /* it knows the old places */
}

static int add_shorter(struct report *r, struct rows *rows, struct report_row *old)
{
	uint64_t places[STACK_PLACES_MAX];
	bool cut;

	if (old->frame_count)
		memcpy(places, old->frames, old->frame_count * sizeof *places);
	uint32_t n = filter_frames(&r->filter, places, old->frame_count, &cut);
	struct report_row *row = rows_get(rows, places, n, old->unknown);
	if (!row)
		return -ENOMEM;
	uint32_t flags = row->flags | (cut ? 0 : old->flags);
	row_merge(row, old);
	row_take_plan(row, &old->plan);
	index_list_join(r->spans.cells, &row->spans, old->spans);
	index_list_join(r->stack_threads.parts, &row->threads, old->threads);
	row->flags = flags; /* where it ends is what the user wanted */
	return 0;
}

/* They may be of what is kept or of what is left out. */
static void add_unassigned(struct report *r)
{
	for (size_t i = 0; i < r->rows.count; i++)
		for (int f = 0; r->rows.list[i].unknown && f < FIGURE_COUNT; f++)
			estimate_merge(&r->unassigned[f], &r->rows.list[i].sum[f]);
}

int filter_rows(struct report *r)
{
	const struct filter_options *o = &r->options.filter;
	struct rows shorter = { .changes = r->rows.changes, .leaks = r->rows.leaks };
	int s = 0;

	if (filter_by_stack(o))
		add_unassigned(r);
	if (filter_any(o))
		drop_rows(&r->rows);
	if (!o->hide && !o->show_from)
		return 0;
	for (size_t i = 0; !s && i < r->rows.count; i++) {
		struct report_row *row = &r->rows.list[i];
		for (size_t k = i; r->symbols && i % REPORT_AHEAD == 0 && k < r->rows.count && k < i + REPORT_AHEAD;
		     k++)
			symbols_want(r->symbols, r->rows.list[k].frames, r->rows.list[k].frame_count);
		s = add_shorter(r, &shorter, row);
	}
	rows_done(&r->rows);
	r->rows = shorter;
	return s;
}
