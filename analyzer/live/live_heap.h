/* SPDX-License-Identifier: MIT */
/*
 * The live heap of a dump that is still being written, by stack: read again and again, at a cost that does not grow
 * with the session. Of each look only the table of live blocks and the sums of the stacks are read; the history, which
 * grows with every free, is never touched, and a dump in which nothing was sampled since is not read at all.
 *
 * The dump may be the memory that the target writes at this moment, or the last copy of it on disk, and is opened anew
 * for each look: what does not hold together is left out by the reader (dump_reader.h), and counted.
 *
 * Growth needs no list of blocks. At one look, the base, the live bytes of each stack are put aside, with the stamp of
 * the youngest record. Of a later look those that are not younger are summed up apart: they are the part of the base
 * that still lives. What came since is the rest of the look, what went is the rest of the base: two sums over disjoint
 * sets of blocks, as for a comparison of two dumps (compare.h). A block that is being recorded while the base is read
 * may count as one that was there before; both sums then change by it, their difference does not. Thinning changes what
 * each sample stands for: then a new base begins. There are two bases, so that growth is over the last
 * LIVE_WINDOW_NS / 2 to LIVE_WINDOW_NS.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump/dump_reader.h"
#include "stats/estimate.h"
#include "input/images.h"
#include "base/map.h"
#include "symbols/symbols.h"

#define LIVE_WINDOW_NS 60000000000ull
#define LIVE_BASES 2

struct live_stack {
	uint32_t reference;          /* in the dump; of number 0: none, its stack is not known */
	uint32_t place_count, flags; /* flags: those of the dump */
	uint64_t *places;            /* as a report shows them (stack_places.h) */
	uint64_t *frames;            /* of the dump, while some of Java have no names yet; else NULL */
	uint32_t frame_count, looks;
	struct estimate_sum live[2];                             /* bytes, blocks */
	double allocated;                                        /* bytes since the attach, as they are estimated */
	struct estimate_sum base[LIVE_BASES], still[LIVE_BASES]; /* live bytes at a base; those of them that live now */
	uint32_t group; /* of live_names.h: which of its names this stack has; 0: none yet */
};

struct live_base {
	bool set;
	uint64_t stamp, ns; /* of the youngest record; of the look */
};

struct live_heap {
	struct live_stack *list; /* number 0: the stack is not known */
	size_t count;
	struct live_base bases[LIVE_BASES];
	struct live_stack total;   /* without places */
	struct dump_header header; /* of the last look */
	uint64_t counters[DUMP_COUNTER_COUNT];
	uint64_t skipped; /* things that could not be read, of the last look that read anything */
	enum dump_end end;
	uint64_t rate; /* the largest that a sample may have; 1: every allocation is recorded */
	uint64_t ns;   /* of the last look: realtime clock */
	uint64_t duration_ns;
	struct images images;
	struct symbols *symbols; /* with the names that the dump has; NULL: none wanted */
	/* private: */
	const struct image_search *search;
	struct map stack_of;
	uint64_t stack_bytes, youngest;
	size_t placed;   /* stacks whose frames are places */
	size_t nameless; /* of these, that have frames */
	bool opened;     /* there was a look */
	struct live_probability *probabilities;
};

/* search: of symbols, must outlive heap; NULL: none. -ENOMEM. live_heap_done in any case. */
int live_heap_init(struct live_heap *heap, const struct image_search *search) WARN_UNUSED;
void live_heap_done(struct live_heap *heap);

/*
 * Reads what has changed. A dump of another session is a new beginning: *anew, with other stacks, images and symbols.
 * 0, -ENOMEM.
 */
int live_heap_look(struct live_heap *heap, struct dump *dump, bool *anew) WARN_UNUSED;
/* Growth is counted from the last look on. */
void live_heap_restart(struct live_heap *heap);
/* Seconds since the base that growth is counted from; 0: none. */
double live_heap_window(const struct live_heap *heap);
/* What came and what went since the base, of a stack, the total, or a sum of stacks. */
void live_heap_growth(const struct live_heap *heap, const struct live_stack *stack, struct estimate_sum *plus,
                      struct estimate_sum *minus);
/* Adds the figures. */
void live_stack_add(struct live_stack *sum, const struct live_stack *stack);
/* The live bytes or blocks with their interval; the upper end holds what samples that were lost may have stood for. */
struct estimate live_heap_estimate(const struct live_heap *heap, const struct live_stack *stack, bool bytes,
                                   double confidence);
