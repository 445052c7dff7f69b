/* SPDX-License-Identifier: MIT */
#include "live/live_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "stats/compare.h"

#define BYTES 0
#define BLOCKS 1

const char *live_sort_name(enum live_sort sort)
{
	static const char *const names[] = { "live", "growth", "blocks", "samples" };

	return names[sort];
}

static void fill_growth(const struct live_heap *heap, struct live_row *row)
{
	live_heap_growth(heap, row->figures, &row->plus, &row->minus);
	row->growth = row->plus.value - row->minus.value;
	row->p = 1;
}

static bool is_empty(const struct live_row *row)
{
	return !row->figures->live[BYTES].samples && !row->plus.samples && !row->minus.samples;
}

static void add_row(struct live_rows *rows, const struct live_heap *heap, const struct live_stack *figures,
                    uint32_t group)
{
	struct live_row row = { .figures = figures, .group = group };

	fill_growth(heap, &row);
	if (!is_empty(&row))
		rows->list[rows->count++] = row;
}

static int make_groups(struct live_rows *rows, const struct live_heap *heap, const struct live_names *names)
{
	size_t count = names->count + 1;

	rows->groups = calloc(count, sizeof *rows->groups);
	rows->list = calloc(count, sizeof *rows->list);
	if (!rows->groups || !rows->list)
		return -ENOMEM;
	for (size_t i = 0; i < heap->count; i++)
		live_stack_add(&rows->groups[heap->list[i].group], &heap->list[i]);
	for (size_t i = 0; i < count; i++)
		add_row(rows, heap, &rows->groups[i], (uint32_t)i);
	return 0;
}

static int make_stacks(struct live_rows *rows, const struct live_heap *heap)
{
	rows->list = calloc(heap->count + 1, sizeof *rows->list);
	if (!rows->list)
		return -ENOMEM;
	for (size_t i = 0; i < heap->count; i++)
		add_row(rows, heap, &heap->list[i], 0);
	return 0;
}

/* ---- what is more than chance ---- */

/* n / (k (k + 1)) is n / k - n / (k + 1), so all parts together are 1. Half is for the rows, half for the total. */
double live_rows_level(double confidence, uint64_t test)
{
	double k = LIVE_TESTS_HALF + (double)test;

	return (1 - confidence) / 2 * LIVE_TESTS_HALF / (k * (k + 1));
}

static double change_in_errors(const struct live_row *row)
{
	double variance = row->plus.variance + row->minus.variance;

	return row->growth == 0 ? 0 : variance > 0 ? fabs(row->growth) / sqrt(variance) : INFINITY;
}

static int by_change(const void *a, const void *b)
{
	double x = change_in_errors(a), y = change_in_errors(b);

	return (x < y) - (x > y);
}

static double two_sided(const struct live_row *row)
{
	double p = row->growth >= 0 ? compare_p_value(&row->plus, &row->minus)
	                            : compare_p_value(&row->minus, &row->plus);

	return p < 0.5 ? 2 * p : 1;
}

static int verdict(const struct live_row *row, double threshold)
{
	if (row->growth == 0 || row->p > threshold)
		return 0;
	return row->growth > 0 ? 1 : -1;
}

static int test_growth(struct live_rows *rows, double level)
{
	AUTO_FREE double *p = calloc(rows->count + 1, sizeof *p);

	if (!p)
		return -ENOMEM;
	qsort(rows->list, rows->count, sizeof *rows->list, by_change);
	for (size_t i = 0; i < rows->count; i++) {
		if (i < LIVE_TESTED && rows->list[i].growth != 0)
			rows->list[i].p = two_sided(&rows->list[i]);
		p[i] = rows->list[i].p;
	}
	double threshold = compare_threshold(p, rows->count, level);
	for (size_t i = 0; i < rows->count; i++)
		rows->list[i].verdict = verdict(&rows->list[i], threshold);
	rows->total.p = rows->total.growth != 0 ? two_sided(&rows->total) : 1;
	rows->total.verdict = verdict(&rows->total, level);
	return 0;
}

/* ---- order ---- */

static double key_of(const struct live_row *row, enum live_sort sort)
{
	switch (sort) {
	case LIVE_SORT_BLOCKS: return row->figures->live[BLOCKS].value;
	case LIVE_SORT_SAMPLES: return (double)row->figures->live[BYTES].samples;
	case LIVE_SORT_GROWTH: return row->growth;
	default: return row->figures->live[BYTES].value;
	}
}

/* Of equal ones, in an order that does not change from look to look. */
static int compare_rows(const struct live_row *x, const struct live_row *y, enum live_sort sort)
{
	double a = key_of(x, sort), b = key_of(y, sort);

	/* What has grown for certain comes before what may be chance. */
	if (sort == LIVE_SORT_GROWTH && (x->verdict > 0) != (y->verdict > 0))
		return y->verdict > 0 ? 1 : -1;
	if (a != b)
		return (a < b) - (a > b);
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->figures->reference > y->figures->reference) - (x->figures->reference < y->figures->reference);
}

#define COMPARE_BY(name, sort)                                                                                         \
	static int name(const void *a, const void *b)                                                                  \
	{                                                                                                              \
		return compare_rows(a, b, sort);                                                                       \
	}
COMPARE_BY(by_live, LIVE_SORT_LIVE)
COMPARE_BY(by_growth, LIVE_SORT_GROWTH)
COMPARE_BY(by_blocks, LIVE_SORT_BLOCKS)
COMPARE_BY(by_samples, LIVE_SORT_SAMPLES)

int live_rows_make(struct live_rows *rows, const struct live_heap *heap, const struct live_names *names,
                   enum live_sort sort, double level)
{
	static int (*const orders[])(const void *, const void *) = { by_live, by_growth, by_blocks, by_samples };

	*rows = (struct live_rows){ .total.figures = &heap->total };
	fill_growth(heap, &rows->total);
	int r = names->by == BY_STACK ? make_stacks(rows, heap) : make_groups(rows, heap, names);
	if (!r && rows->count)
		r = test_growth(rows, level);
	if (!r && rows->count)
		qsort(rows->list, rows->count, sizeof *rows->list, orders[sort]);
	return r;
}

const char *live_rows_name(const struct live_heap *heap, const struct live_names *names, const struct live_row *row,
                           char out[LIVE_NAME_TEXT])
{
	if (names->by != BY_STACK)
		return live_names_text(names, row->group);
	live_names_stack(names, heap, row->figures, out);
	return out;
}

void live_rows_filter(struct live_rows *rows, const struct live_heap *heap, const struct live_names *names,
                      const char *text)
{
	bool stacks = names->by == BY_STACK;
	size_t count = stacks && rows->count > LIVE_FILTERED ? LIVE_FILTERED : rows->count, left = 0;
	char name[LIVE_NAME_TEXT];

	for (size_t i = 0; stacks && i < count; i++)
		live_names_want(heap, rows->list[i].figures);
	for (size_t i = 0; i < count; i++)
		if (strcasestr(live_rows_name(heap, names, &rows->list[i], name), text))
			rows->list[left++] = rows->list[i];
	rows->count = left;
}

const struct live_stack *live_rows_largest(const struct live_heap *heap, const struct live_names *names,
                                           const struct live_row *row)
{
	const struct live_stack *largest = names->by == BY_STACK ? row->figures : NULL;

	for (size_t i = 0; i < heap->count && names->by != BY_STACK; i++)
		if (heap->list[i].group == row->group &&
		    (!largest || heap->list[i].live[BYTES].value > largest->live[BYTES].value))
			largest = &heap->list[i];
	return largest;
}

void live_rows_done(struct live_rows *rows)
{
	free(rows->list);
	free(rows->groups);
	*rows = (struct live_rows){ 0 };
}
