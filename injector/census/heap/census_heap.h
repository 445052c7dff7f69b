/* SPDX-License-Identifier: MIT */
/* What the allocators have of the memory of a process, and what they did with it. */
#pragma once

#include "census/heap/anonymous_blocks.h"
#include "census/allocators/other_heap.h"
#include "process/target.h"

struct census_heap {
	struct glibc_heap glibc;
	struct heap_figures figures;
	struct python_pools pools;
	struct other_heap other;             /* one at most */
	uint64_t mapped_count, mapped_bytes; /* blocks of malloc with mappings of their own */
	struct extents extents;              /* sorted */
};

struct census_heap_source {
	const struct target *target;
	const struct maps *maps;
	struct census_memory *memory;
	bool (*is_stack)(const void *stacks, const struct mapping *m);
	const void *stacks;
};

/*
 * Finds arenas, blocks and pools, and counts them. Where an allocator is not known its memory is left out of the
 * extents, which is no failure. census_heap_free afterwards, always.
 */
int census_heap_take(struct census_heap *h, const struct census_heap_source *source, struct err *e) WARN_UNUSED;
/*
 * The same without a look at each chunk: of glibc's malloc only how much is free, by its lists. It ends where
 * census_memory_in_time() says so; another allocator has most of the time, and is given up (other.over) where that is
 * too little.
 */
struct census_sketch {
	bool cut; /* there may be more extents than were found */
	bool knows_free;
	uint64_t freed; /* resident bytes of free chunks */
};
int census_heap_sketch(struct census_heap *h, const struct census_heap_source *source, struct census_sketch *sketch,
                       struct err *e) WARN_UNUSED;
void census_heap_free(struct census_heap *h);
