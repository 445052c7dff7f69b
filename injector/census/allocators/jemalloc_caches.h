/* SPDX-License-Identifier: MIT */
/*
 * What the caches of threads hold in jemalloc 5.3: blocks that the program has freed, and that slabs count as given
 * out.
 *
 * A cache is an array of bins in the thread's own data, one for each size class from the smallest on (tcache.h,
 * cache_bin.h). A bin has the head of its stack of blocks, a count, and the low 16 bits of where the head was at its
 * lowest since, is when the stack is full, and when it is empty. The stacks of one cache follow each other in memory:
 * where that is so of as many bins as there are small classes, the array is one.
 */
#pragma once

#include "census/allocators/other_heap.h"

#define JEMALLOC_BIN_WORDS 3u
#define JEMALLOC_BINS_LEAST 36u /* small classes */
#define JEMALLOC_BINS_MOST 73u  /* with large ones, as the greatest lg_tcache_max has them */

/* Blocks in each bin of the cache at these words, of which there may be fewer than it has. How many bins; 0: it is
 * none. */
unsigned jemalloc_caches_read(const uint64_t *words, size_t count, uint32_t blocks[JEMALLOC_BINS_MOST]);

/* Takes away what is in all of them that are found in memory outside of the extents, which are sorted. */
void jemalloc_caches_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory,
                          const struct extents *extents);
