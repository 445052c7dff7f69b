/* SPDX-License-Identifier: MIT */
/*
 * The heap of gperftools' tcmalloc 2.10 and what has its layout, with pages of 8 KiB, found without symbols.
 *
 * Its variables are in the data of one module. By their shapes are found: the table of size classes, which ends with
 * 256 KiB and with how many there are; the central lists, each of which has the number of its class; caches of threads,
 * each of whose lists has the size of its class; and the page map, 2^17 words that lead to leaves of 2^18, one for each
 * page, which lead to spans that say which pages they are (pagemap.h, span.h, common.h, thread_cache.h).
 *
 * A span is free, one block, or blocks of a class, with how many were given out: to the program, or to the caches,
 * whose blocks are taken away again.
 */
#pragma once

#include "census/allocators/other_heap.h"

#define TCMALLOC_CLASSES 128u
#define TCMALLOC_PAGE 8192u

/* What stands in a row in the middle of its SizeMap. */
struct tcmalloc_size_map {
	int32_t move[TCMALLOC_CLASSES];  /* blocks that go from one cache to another at once */
	int32_t bytes[TCMALLOC_CLASSES]; /* 0, 8, 16 … 262144, 0 … */
	uint32_t padding;
	uint64_t pages[TCMALLOC_CLASSES]; /* of a span, of 8 KiB */
	uint64_t count;
} __attribute__((packed));
bool tcmalloc_size_map_fits(const struct tcmalloc_size_map *map);

struct tcmalloc_span {
	uint64_t start, end;
	uint64_t block_bytes; /* 0: it is free */
	uint64_t blocks;
};
/* By its six words; false: it is none. */
bool tcmalloc_span_of(struct tcmalloc_span *x, const struct tcmalloc_size_map *map, const uint64_t words[6]);

/* Leaves *h as it is where there is none that can be proved, or it is libtcmalloc_debug, say. -ENOMEM. */
int tcmalloc_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, struct extents *extents,
                  struct err *e) WARN_UNUSED;
