/* SPDX-License-Identifier: MIT */
/*
 * The stacks of a report as the forms for other programs show them: figures are whole numbers whose sum is the total,
 * whatever is shown of the stacks. What --top leaves out is one row more. Where a stack is not known, or not to its
 * end, a name in parentheses says so in the place of its frames.
 */
#pragma once

#include "report/report.h"

/* OUTPUT_PEAK: of a live figure, where report.times are known. */
enum output_side { OUTPUT_NOW, OUTPUT_OLD, OUTPUT_GROWTH, OUTPUT_PEAK };

/* Names that stand for frames. */
enum output_gap { OUTPUT_NO_GAP, OUTPUT_UNKNOWN, OUTPUT_MORE, OUTPUT_HIDDEN, OUTPUT_CUT, OUTPUT_DEPTH, OUTPUT_GAPS };

struct output_rows {
	const struct report *report;
	size_t shown;
	size_t count; /* shown, and one if there are more */
	char more[64];
};

void output_rows_init(struct output_rows *rows, const struct report *report);
/* NULL: the row of those that are not shown. */
const struct report_row *output_rows_row(const struct output_rows *rows, size_t i);
/* How many frames of it are shown. */
size_t output_rows_depth(const struct output_rows *rows, size_t i);
/* What stands outside of its frames, or for all of them. */
enum output_gap output_rows_gap(const struct output_rows *rows, size_t i);
const char *output_gap_name(const struct output_rows *rows, enum output_gap gap);
/* The samples that a figure of it rests on; of a growth those of both sides. */
uint64_t output_rows_samples(const struct output_rows *rows, size_t i, enum report_figure figure);
/* The lifetimes of all its blocks together, in microseconds, where report.times are known. */
uint64_t output_rows_lived(const struct output_rows *rows, size_t i);
/* A figure of all rows, to be freed. Rounded so that the sum is that of the total. NULL: out of memory. */
int64_t *output_rows_column(const struct output_rows *rows, enum output_side side, enum report_figure figure);
/* The total as such a number. */
int64_t output_rows_total(const struct output_rows *rows, enum output_side side, enum report_figure figure);
