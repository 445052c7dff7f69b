/* SPDX-License-Identifier: MIT */
/*
 * The heap of mimalloc 2.0.9 and what has its layout, not built as secure, found without symbols: it takes memory in
 * segments, which begin at multiples of 32 MiB with a header that has an element for each of their slices of 64 KiB
 * (mimalloc-types.h). The elements lead from one span of slices to the next, exactly to the end of the segment.
 *
 * A span is a page of blocks of one size, with how many are in use, or free. In use are also blocks that another thread
 * has freed, until the owner of the page looks: they stand in a list of the page, or of the owner's heap, to which the
 * page leads.
 */
#pragma once

#include "census/allocators/other_heap.h"

#define MIMALLOC_HEADER_AT 208u /* of the words that tell of a segment */
#define MIMALLOC_HEADER_WORDS 7u
#define MIMALLOC_SLICE_WORDS 7u /* … and of a span, in the element of its first slice */

struct mimalloc_segment {
	uint64_t start;
	uint64_t slices, first, entries; /* in all, the first behind the header, with elements */
	uint64_t key;                    /* the same for all segments of a process */
	bool huge;                       /* of one block */
	bool empty;                      /* kept for what comes: its spans have been taken apart */
};
/* False: there is none. */
bool mimalloc_segment_of(struct mimalloc_segment *s, uint64_t start, const uint64_t words[MIMALLOC_HEADER_WORDS]);

struct mimalloc_span {
	uint64_t slices;
	uint64_t block_bytes;     /* 0: it is free */
	uint64_t blocks;          /* in use */
	uint64_t heap;            /* of its owner, or 0 */
	uint64_t freed_by_others; /* the first of a list of those among them that other threads have freed, or 0 */
};
/* The span that begins at a slice of a segment; false: it is not one. */
bool mimalloc_span_of(struct mimalloc_span *x, const struct mimalloc_segment *s, uint64_t slice,
                      const uint64_t words[MIMALLOC_SLICE_WORDS]);

/* Leaves *h as it is where there is none that can be proved. -ENOMEM. */
int mimalloc_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, struct extents *extents,
                  struct err *e) WARN_UNUSED;
