/* SPDX-License-Identifier: MIT */
/*
 * What the caches of threads hold in jemalloc: blocks that the program has freed, and that slabs count as given out.
 *
 * A cache is an array of bins in the thread's own data, one for each size class from the smallest on (tcache.h,
 * cache_bin.h). In 5.3 a bin has the head of its stack of blocks, a count, and the low 16 bits of where the head was at
 * its lowest since, is when the stack is full, and when it is empty. In 5.2 it has how many blocks its stack had at its
 * lowest since, and has, a count, and where the stack ends; bins of large classes are behind those of small ones, and
 * pointers to both between them (tcache_structs.h). The stacks of one cache follow each other in memory: where that is
 * so of as many bins as there are small classes, the array is one.
 */
#pragma once

#include "census/allocators/jemalloc.h"

#define JEMALLOC_BIN_WORDS 3u
#define JEMALLOC_BINS_MOST 76u /* with those of large classes, as the greatest lg_tcache_max has them */

struct jemalloc_cache {
	unsigned bins;  /* one for each size class from the smallest on */
	unsigned words; /* up to the end of the last one */
	uint32_t blocks[JEMALLOC_BINS_MOST];
};

/* The cache that begins with these words, of which there may be fewer than it has. False: it is none. */
bool jemalloc_caches_read(const struct jemalloc_layout *layout, const uint64_t *words, size_t count,
                          struct jemalloc_cache *cache);

/* Takes away what is in all of them that are found in memory outside of the extents, which are sorted. */
void jemalloc_caches_take(struct other_heap *h, const struct jemalloc_layout *layout, const struct maps *maps,
                          struct census_memory *memory, const struct extents *extents);
