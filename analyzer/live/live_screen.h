/* SPDX-License-Identifier: MIT */
/*
 * A look at the live heap as text: a screen of so many columns and lines, or lines for scripts. Nothing that comes from
 * a dump acts on a terminal: it is made printable before (printable.h). Where columns are missing the least important
 * ones are left out; the live bytes and the name stay.
 */
#pragma once

#include <stdio.h>

#include "live/live_keys.h"

/* What is shown of a row. */
struct live_line {
	struct estimate live;
	double share, blocks;
	double kept;   /* a part of 1; below 0: not known */
	double growth; /* bytes per second */
	bool growth_known;
	int verdict; /* 1 grown, -1 shrunk, 0 may be chance */
	uint64_t samples;
};

/* Looks that the line of bars in the head shows. */
#define LIVE_TREND 30u

struct live_frame {
	const struct live_heap *heap;
	const struct live_rows *rows;
	const struct live_names *names;
	struct live_choice choice;
	double confidence;
	const double *trend;            /* live bytes at the last looks, the oldest first; */
	size_t trend_count;             /* at most LIVE_TREND */
	const struct live_stack *whole; /* that is shown if the choice says so */
	const char *notice;             /* a line about the dump or the view itself, NULL: none */
};

struct live_line live_line_of(const struct live_frame *frame, const struct live_row *row);
/* The figures in columns, for a screen of that width; returns the columns that they take, without colour. */
size_t live_line_text(const struct live_line *line, size_t columns, bool colour, FILE *out);
/* The names of these columns. */
size_t live_line_head(size_t columns, FILE *out);

/* A line of at most so many columns, made printable. */
void live_screen_line(const char *text, size_t columns, FILE *out);
/* How many rows a screen of so many lines shows. */
size_t live_screen_page(size_t lines);
/* A whole screen; each line ends with what erases the rest of it. */
void live_screen_write(const struct live_frame *frame, size_t columns, size_t lines, bool colour, FILE *out);

/* What is left when the session has ended: the head and the first rows, without anything that moves the cursor. */
void live_screen_last(const struct live_frame *frame, FILE *out);

/*
 * For scripts: a line that begins with # for the session and one for the names of columns, the total, then the first
 * rows (0: all), columns divided by tabs, bytes in full. Ends with an empty line.
 */
void live_batch_write(const struct live_frame *frame, size_t top, FILE *out);
