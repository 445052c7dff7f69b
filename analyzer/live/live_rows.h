/* SPDX-License-Identifier: MIT */
/*
 * The rows of the live view: stacks, or sums of them, with their growth, sorted. Whether a growth is more than chance
 * is decided as for a comparison (compare.h), in both directions; the test takes time, so it is made for the
 * LIVE_TESTED rows that changed most in relation to their error, and the others count as tests that found nothing:
 * fewer are called grown for that, never more.
 *
 * A view looks again and again, and what is chance shows at some look. So each look spends a part of the error of the
 * whole view, and a view of a steady heap says so much as once that anything has changed with 1 - confidence at most,
 * however long it lasts and whatever its looks have in common. Half is spent in the first LIVE_TESTS_HALF looks.
 */
#pragma once

#include "live/live_heap.h"
#include "live/live_names.h"

#define LIVE_TESTED 32u
#define LIVE_TESTS_HALF 300.0
#define LIVE_FILTERED 2048u

enum live_sort { LIVE_SORT_LIVE, LIVE_SORT_GROWTH, LIVE_SORT_BLOCKS, LIVE_SORT_SAMPLES, LIVE_SORT_COUNT };

struct live_row {
	const struct live_stack *figures; /* the stack itself, or the sum of a group */
	uint32_t group;
	struct estimate_sum plus, minus; /* since the base */
	double growth;                   /* bytes */
	double p;                        /* two-sided; 1: not tested */
	int verdict;                     /* 1 grown, -1 shrunk, 0 may be chance */
};

struct live_rows {
	struct live_row *list;
	size_t count;
	struct live_row total;
	struct live_stack *groups;
};

const char *live_sort_name(enum live_sort sort);

/* The level of all rows, and that of the total, at this test of a view; the first one is 0. */
double live_rows_level(double confidence, uint64_t test);
/* Of the heap as it is, whose stacks have groups if names is not by stack; valid until the next look. -ENOMEM.
 * live_rows_done in any case. */
int live_rows_make(struct live_rows *rows, const struct live_heap *heap, const struct live_names *names,
                   enum live_sort sort, double level) WARN_UNUSED;
/* What a row is called, printable; out may be what is returned. */
const char *live_rows_name(const struct live_heap *heap, const struct live_names *names, const struct live_row *row,
                           char out[LIVE_NAME_TEXT]);
/* Leaves the rows that have the text in their names, in capitals or not; stacks are looked at up to LIVE_FILTERED. The
 * total stays. */
void live_rows_filter(struct live_rows *rows, const struct live_heap *heap, const struct live_names *names,
                      const char *text);
/* The stack with most live bytes of a row. */
const struct live_stack *live_rows_largest(const struct live_heap *heap, const struct live_names *names,
                                           const struct live_row *row);
void live_rows_done(struct live_rows *rows);
