/* SPDX-License-Identifier: MIT */
/*
 * The samples of one dump, added up for each of its stacks. A long history touches one small tally for each record, in
 * no order: so what every sample adds to is apart from the rest, the rest is there only if it is asked for, and
 * records are taken in batches, for which the tallies are fetched ahead.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "input/classes.h"
#include "input/labels.h"
#include "dump/dump_reader.h"
#include "stats/estimate.h"
#include "stats/halves.h"
#include "stats/leaks.h"
#include "base/map.h"
#include "input/progress.h"
#include "input/reuse.h"
#include "input/rows.h"
#include "stats/spans.h"
#include "input/stack_threads.h"
#include "input/threads.h"
#include "stats/timeline.h"

/* Of all samples that still have a record: a cache line. */
struct tally {
	_Alignas(64) double next; /* largest weight */
	double smallest;          /* size; 0: of no sample */
	double history_bytes;     /* bytes of the samples that are in the history */
	uint64_t history;         /* how many they are */
	struct free_sum seen;     /* frees that were seen, of those in the history */
	uint32_t reference;       /* of the stack; 0: it is not known */
	bool out;                 /* the filter leaves it out */
	bool aligned;             /* a block was asked for with an alignment */
	bool beside;              /* it is not what the report is about: sample_options.files */
};

/* Of those that are live. */
struct live_part {
	struct estimate_sum sum[2]; /* FIGURE_LIVE_BYTES, FIGURE_LIVE_COUNT */
	struct slack slack;
	struct free_tally frees; /* at the end, whatever is asked for; but for what is in the tally */
	uint64_t records; /* in the live table, whatever is asked for, those of samples that were given up included */
};

/* Of those in a window of time, or of the later and the earlier state of a session: see struct row_change. */
struct window_part {
	struct estimate_sum born[2], old[2], plus[2], minus[2];
};

/* What is asked for. */
struct sample_options {
	uint64_t at, since;              /* stamps; at: UINT64_MAX the end, since: 0 none */
	const struct leak_window *leaks; /* NULL: not asked for */
	/* Of two states of one session: see sample_pairs.h. NULL: no such pair. */
	struct map *kept;
	bool later;
	enum sample_half half;      /* only these samples count */
	bool files;                 /* mappings of files are what counts, else memory; live sums alone have both */
	bool times;                 /* lifetimes, too, and what was live at */
	uint64_t peak;              /* this stamp, which was chosen by half of the samples */
	bool plan;                  /* how well sums would be known at other rates, too, */
	enum report_figure planned; /* those of this figure */
	bool threads;               /* sum up by thread, too */
	bool classes;               /* sum up by size, by lifetime and by residency, too, */
	struct labels *labels;      /* and by these; NULL: not asked for */
	const struct sample_filter *filter;  /* NULL: none */
	struct timeline *timeline;           /* NULL: not asked for */
	struct spans *spans;                 /* with it; NULL: not asked for */
	struct stack_threads *stack_threads; /* NULL: not asked for */
	uint64_t age;                        /* stamps; blocks are in the timeline only when they are so old */
	struct progress *progress;           /* NULL: nobody wants to know */
};

struct sample_batch;

/* Which samples count, in all figures but those that say what the figures are worth. */
struct sample_filter {
	bool records;                 /* the first three say something */
	uint64_t size_low, size_high; /* low <= size < high; high 0: no limit */
	uint64_t born_latest;         /* stamp; UINT64_MAX: any */
	const struct map *threads;    /* tid -> 1: its samples count; NULL: all do */
	/* Sets out in the tallies from number first on, without which all count; NULL: all do. -ENOMEM. */
	int (*choose)(void *arg, struct tally *tallies, size_t first, size_t count);
	void *arg;
};

struct samples {
	struct sample_options options;
	uint64_t rate;         /* largest of all samples, and of what it was set to before */
	uint64_t oldest_freed; /* stamp of the oldest history record, 0: none */
	size_t count;          /* stacks; number 0: the stack is not known */
	struct tally *tallies;
	struct live_part *lives;
	struct window_part *windows;                /* NULL: not asked for */
	struct leak_tally *leaks;                   /* NULL: not asked for */
	struct row_times *times;                    /* NULL: not asked for */
	struct row_plan **plans;                    /* NULL: not asked for; of a stack without a sample, too */
	struct threads threads;                     /* empty: not asked for */
	struct classes classes;                     /* empty: not asked for */
	struct estimate_sum left_out[FIGURE_COUNT]; /* by what their records say, whatever their stack is */
	struct estimate_sum fit;                    /* what the live blocks need of the memory: trust.h */
	/* private: */
	struct dump *dump;
	size_t room;
	bool chosen; /* each new stack is to be asked about */
	double ns_per_stamp;
	uint64_t view_end; /* stamp: until when what is live has lived */
	struct map stack_of;
	struct reuse reuse;
	uint64_t taken, expected; /* samples */
	uint64_t stack_bytes;     /* of the stacks that have a number */
	struct sample_batch *batch;
};

/* Reads live records, history and stacks, in this order, and records again for pairs of blocks at one address; again if
 * the live samples were thinned meanwhile. 0, -ENOMEM; samples_done in any case. */
int samples_read(struct samples *samples, struct dump *dump, const struct sample_options *options) WARN_UNUSED;
void samples_done(struct samples *samples);
