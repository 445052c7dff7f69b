/* SPDX-License-Identifier: MIT */
/*
 * From chunk to chunk through a segment: each header says how long its chunk is, and the next one whether it is free.
 *
 * The process runs meanwhile, so a chunk may be split or merged between its header and that of the next one. Memory is
 * read a window at a time, shortly before it is walked. Where a header cannot be one, the window is read again, from
 * earlier and earlier chunks on; where that does not help, the next place is taken from which eight chunks follow each
 * other, and what is skipped is a gap. So is what is in swap, which is not read.
 */
#pragma once

#include "census/heap/glibc_heap.h"

/* Fills in the marks and top of a segment, and notes what may be a tcache. -ENOMEM. */
int chunk_walk(struct glibc_heap *h, struct heap_segment *s, struct census_memory *memory, struct err *e) WARN_UNUSED;
/* A chunk in use where none in use began before. */
typedef void (*chunk_new_fn)(void *context, uint64_t chunk);

/*
 * Walks again, while the process stands still, what has changed in [from, to); as far as it takes until a chunk begins
 * where one began. Parts that change are given in ascending order. What cannot be a chunk is counted as lost. -ENOMEM;
 * -ETIME: not until h->again_until_ns.
 */
struct chunk_range {
	struct heap_segment *segment;
	uint64_t from, to;
};
int chunk_walk_again(struct glibc_heap *h, struct census_memory *memory, struct chunk_range range, chunk_new_fn is_new,
                     void *context, struct err *e) WARN_UNUSED;
