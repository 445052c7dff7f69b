/* SPDX-License-Identifier: MIT */
#include "output/output_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Numbers of JavaScript are whole up to here; only a dump that lies has more. */
#define WHOLE_MAX 0x1p53
#define LIVED_MAX 0x1p63

void output_rows_init(struct output_rows *rows, const struct report *r)
{
	size_t shown = report_shown(r);

	*rows = (struct output_rows){ .report = r, .shown = shown, .count = shown + (shown < r->rows.count) };
	snprintf(rows->more, sizeof rows->more, "(%zu more stacks)", r->rows.count - shown);
}

const struct report_row *output_rows_row(const struct output_rows *rows, size_t i)
{
	return i < rows->shown ? &rows->report->rows.list[i] : NULL;
}

size_t output_rows_depth(const struct output_rows *rows, size_t i)
{
	const struct report_row *row = output_rows_row(rows, i);

	return row ? report_depth(rows->report, row) : 0;
}

enum output_gap output_rows_gap(const struct output_rows *rows, size_t i)
{
	const struct report_row *row = output_rows_row(rows, i);

	if (!row)
		return OUTPUT_MORE;
	if (!row->frame_count && !row->unknown && rows->report->options.filter.hide)
		return OUTPUT_HIDDEN;
	if (row->unknown || !row->frame_count)
		return OUTPUT_UNKNOWN;
	if (report_depth(rows->report, row) < row->frame_count)
		return OUTPUT_DEPTH;
	return row->flags ? OUTPUT_CUT : OUTPUT_NO_GAP;
}

const char *output_gap_name(const struct output_rows *rows, enum output_gap gap)
{
	static const char *const names[OUTPUT_GAPS] = { [OUTPUT_UNKNOWN] = "(stack not known)",
		                                        [OUTPUT_HIDDEN] = "(no frame is shown)",
		                                        [OUTPUT_CUT] = "(outer frames not known)",
		                                        [OUTPUT_DEPTH] = "(outer frames left out)" };

	return gap == OUTPUT_MORE ? rows->more : names[gap];
}

static uint64_t samples_of(const struct report *r, const struct report_row *row, enum report_figure figure)
{
	return report_compares(r) ? row->change->plus[figure].samples + row->change->minus[figure].samples
	                          : row->sum[figure].samples;
}

uint64_t output_rows_samples(const struct output_rows *rows, size_t i, enum report_figure figure)
{
	const struct report *r = rows->report;
	uint64_t sum = 0;

	if (i < rows->shown)
		return samples_of(r, &r->rows.list[i], figure);
	for (size_t k = rows->shown; k < r->rows.count; k++)
		sum += samples_of(r, &r->rows.list[k], figure);
	return sum;
}

uint64_t output_rows_lived(const struct output_rows *rows, size_t i)
{
	const struct report *r = rows->report;
	double ns = 0;

	for (size_t k = i; k < (i < rows->shown ? i + 1 : r->rows.count); k++)
		ns += r->rows.list[k].times.lived;
	return ns > 0 ? (uint64_t)fmin(LIVED_MAX, round(ns / 1000)) : 0;
}

static double value_of(const struct report_row *row, enum output_side side, enum report_figure figure)
{
	switch (side) {
	case OUTPUT_OLD: return row->change->old[figure].value;
	case OUTPUT_GROWTH: return row->change->plus[figure].value - row->change->minus[figure].value;
	case OUTPUT_PEAK: return report_is_live(figure) ? row->times.peak[figure] : 0;
	default: return row->sum[figure].value;
	}
}

static double bounded(double value)
{
	return isnan(value) ? 0 : fmax(-WHOLE_MAX, fmin(WHOLE_MAX, value));
}

int64_t output_rows_total(const struct output_rows *rows, enum output_side side, enum report_figure figure)
{
	return (int64_t)round(bounded(value_of(&rows->report->total, side, figure)));
}

struct remainder {
	double value;
	size_t row;
};

/* The largest first; of equal ones the first row. */
static int compare_remainders(const void *a, const void *b)
{
	const struct remainder *x = a;
	const struct remainder *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Rounds down, then one up for each of the largest remainders, until the sum is the total. */
static void make_whole(int64_t *whole, struct remainder *remainders, size_t count, int64_t total)
{
	uint64_t left = (uint64_t)total; /* a dump that lies may have rows whose sum is beyond any number */

	for (size_t i = 0; i < count; i++) {
		double value = bounded(remainders[i].value);
		whole[i] = (int64_t)floor(value);
		remainders[i].value = value - floor(value);
		left -= (uint64_t)whole[i];
	}
	if (left <= count) {
		qsort(remainders, count, sizeof *remainders, compare_remainders);
		for (uint64_t i = 0; i < left; i++)
			whole[remainders[i].row]++;
	}
}

int64_t *output_rows_column(const struct output_rows *rows, enum output_side side, enum report_figure figure)
{
	const struct report *r = rows->report;
	AUTO_FREE struct remainder *remainders = calloc(rows->count + 1, sizeof *remainders);
	int64_t *whole = calloc(rows->count + 1, sizeof *whole);

	if (!whole || !remainders) {
		free(whole);
		return NULL;
	}
	for (size_t i = 0; i < r->rows.count; i++)
		remainders[i < rows->shown ? i : rows->shown].value += value_of(&r->rows.list[i], side, figure);
	for (size_t i = 0; i < rows->count; i++)
		remainders[i].row = i;
	make_whole(whole, remainders, rows->count, output_rows_total(rows, side, figure));
	return whole;
}
