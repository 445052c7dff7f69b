/* SPDX-License-Identifier: MIT */
/*
 * What a dump says, ready to be shown: totals and one row for each stack, sorted. The text and the JSON report show the
 * same report. Stacks are told apart by their frames (image and offset) after the allocator's own wrappers
 * are taken off; equal ones are one row, their variances add up.
 */
#ifndef MEMATTACH_REPORT_H
#define MEMATTACH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump_reader.h"
#include "estimate.h"
#include "images.h"
#include "symbols.h"

enum report_figure { FIGURE_LIVE_BYTES, FIGURE_LIVE_COUNT, FIGURE_ALLOCATED_BYTES, FIGURE_ALLOCATED_COUNT, FIGURE_COUNT };

/* "live-bytes" …; -1 if there is none of that name. */
int report_figure_parse(const char *name);
const char *report_figure_name(enum report_figure figure);

struct report_options {
	enum report_figure sort;
	double confidence;
	size_t top;   /* rows to show, 0: all */
	size_t depth; /* frames to show of each, 0: all */
	bool symbols;
	struct image_search search;
};

struct report_row {
	struct estimate_sum sum[FIGURE_COUNT];
	uint64_t *frames; /* places, from the caller of the allocator outward */
	uint32_t frame_count;
	uint32_t flags;   /* DUMP_STACK_*; of any of the stacks in this row */
	bool unknown;     /* the samples whose stack is not known */
};

struct report_note {
	uint32_t kind; /* enum dump_note_kind */
	char *text;
};

struct report {
	struct report_options options;
	struct dump *dump;
	struct images images;
	struct symbols *symbols; /* NULL: none wanted */
	struct report_row *rows; /* sorted, the largest first */
	size_t row_count;
	size_t stack_count;      /* before equal ones were merged */
	struct report_row total; /* no frames */
	uint64_t largest_rate;   /* of the session and of all samples; 1: every allocation is recorded */
	uint64_t lost;           /* samples that are missing from the figures */
	struct report_note *notes;
	size_t note_count;
	bool complete;           /* nothing of the file was left out */
};

/* Reads all of the dump, which must outlive the report. -ENOMEM or -errno. */
int report_make(struct report *report, struct dump *dump, const struct report_options *options, struct err *e) WARN_UNUSED;
void report_done(struct report *report);

/* How many rows are to be shown. */
size_t report_shown(const struct report *report);
struct estimate report_estimate(const struct report *report, const struct report_row *row, enum report_figure figure);
/* The row's part of the total, 0 … 1. */
double report_share(const struct report *report, const struct report_row *row, enum report_figure figure);
/* The bytes that a stack which is not listed may hold, with the chosen confidence; 0 if all is recorded. */
double report_detection_limit(const struct report *report);
/* Whether every figure is exact: every allocation was recorded and no sample was lost. */
bool report_exact(const struct report *report);

#endif
