/* SPDX-License-Identifier: MIT */
/* The rows of a report: one for each stack, found by its frames. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/estimate.h"
#include "stats/leaks.h"
#include "base/map.h"
#include "stats/trust.h"

enum report_figure {
	FIGURE_LIVE_BYTES,
	FIGURE_LIVE_COUNT,
	FIGURE_ALLOCATED_BYTES,
	FIGURE_ALLOCATED_COUNT,
	FIGURE_COUNT
};

/* What the allocator adds to live blocks whose real size is known. */
struct slack {
	struct estimate_sum sum; /* usable - requested bytes */
	double requested;        /* estimated */
	double smallest;         /* size of a sample; 0: there is none */
};

/* Of a comparison: before, and the disjoint sets of blocks whose difference is the growth. */
struct row_change {
	struct estimate_sum old[FIGURE_COUNT], plus[FIGURE_COUNT], minus[FIGURE_COUNT];
};

/* What the sums of a figure would be on average at the rates 1, 2, 4 …, by each of the samples that are known. */
#define PLAN_RATES 33
struct row_plan {
	double value; /* of these samples */
	float variance[PLAN_RATES], seen[PLAN_RATES];
};

/* Beside the figures of the end, if they are asked for; estimates. */
struct row_times {
	double peak[2]; /* FIGURE_LIVE_BYTES, FIGURE_LIVE_COUNT: what was live when most was */
	double lived;   /* nanoseconds, of all blocks together; those that are live until the end */
};

struct report_row {
	struct estimate_sum sum[FIGURE_COUNT];
	struct slack slack;
	struct row_change *change; /* NULL: nothing is compared */
	struct leak_tally *leak;   /* NULL: nobody looks for leaks */
	struct row_plan *plan;     /* NULL: nothing is planned, or there is no sample */
	struct free_tally frees;   /* how the records of its blocks ended */
	struct row_times times;
	double smallest[2]; /* size of a sample: of the newer dumps, of the older one; 0: there is none */
	struct estimate_sum
		lost[2]; /* FIGURE_LIVE_BYTES, FIGURE_LIVE_COUNT: samples that had no room in the live table */
	double part[2];  /* of the error of lower ends, live and allocated (estimate.h); 0: nobody has asked, or it was
	                    not chosen */
	double p_value;  /* of the growth, one-sided; 1 if there is none */
	bool grown;      /* more than chance explains, all rows considered; of leaks: it is one */
	bool grows;      /* of leaks: old blocks become more, but may be blocks that live long, or a cache that fills */
	bool collected;  /* of leaks: it would be one if it were not garbage, perhaps, that is yet to be collected */
	bool doubtful;   /* frees are missed: growth of live figures may be nothing but that */
	uint64_t *frames; /* places, from the caller of the allocator outward */
	uint32_t frame_count;
	uint32_t flags; /* DUMP_STACK_*; of any of the stacks in this row */
	/* Its lists of cells in report.spans and of parts in report.stack_threads, which row_merge leaves alone. */
	uint32_t spans, threads;
	bool unknown; /* the samples whose stack is not known */
	bool out;     /* the filter leaves it out; until the report is finished */
};

struct rows {
	struct report_row *list;
	size_t count;
	bool changes;      /* rows have a change: to be set before the first */
	bool leaks;        /* the same of a leak, */
	struct map row_of; /* hash of the frames -> row; collisions step by one */
};

/* The row of these frames, a new one if there is none yet; valid until the next call. NULL if out of memory. */
struct report_row *rows_get(struct rows *rows, const uint64_t *places, uint32_t n, bool unknown);
/* Whether nothing is summed up, before and after; change may be NULL. */
bool row_is_empty(const struct report_row *row, const struct row_change *change);
/* A live block that was sampled with p; usable 0: it is not known. */
void slack_add(struct slack *slack, uint64_t size, uint64_t usable, double p);
/* A block of this size that was sampled with p, or a part of one: x of the planned figure, and what it adds to the
 * square of x over the block. rate: no sample has a larger one. */
void row_plan_add(struct row_plan *plan, uint64_t size, double x, double square, double p, uint64_t rate);
void slack_merge(struct slack *into, const struct slack *from);
/* The same of what was lost. */
void row_merge_lost(struct estimate_sum into[2], const struct estimate_sum from[2]);
/* Adds *plan, which may be NULL, to the row's; a row that has none takes it, and *plan becomes NULL. */
void row_take_plan(struct report_row *row, struct row_plan **plan);
/* Adds all that is summed up but plans; of change and leak, if both have one. */
void row_merge(struct report_row *into, const struct report_row *from);
void row_done(struct report_row *row);
void rows_done(struct rows *rows);
