/* SPDX-License-Identifier: MIT */
/*
 * Allocators beside glibc's malloc, told by the structures that they keep of their memory. A layout is believed where
 * what stands in one place agrees with what stands in another throughout; else nothing is said of the memory.
 *
 * The words are the target's: a process that forges them is told what it has made up, within the budget for reading.
 */
#pragma once

#include "census/pages/census_memory.h"
#include "census/pages/extents.h"
#include "maps/maps.h"

#define OTHER_SIZES 256u

struct other_size {
	uint64_t bytes; /* of each block */
	uint64_t blocks;
	uint64_t live; /* resident bytes */
	uint64_t kept; /* free bytes, of memory that is there, which only blocks of this size can use */
};

struct other_heap {
	const char *name;    /* "jemalloc"; NULL: none was found */
	const char *release; /* whose layout was proved: "5.3" */
	uint64_t live_blocks, live_bytes;
	uint64_t live, freed;  /* resident bytes */
	uint64_t cached_bytes; /* of freed blocks, there or not: in caches of threads, and central ones */
	uint64_t lost_bytes;   /* changed while they were read: in neither */
	bool over;             /* the budget is used up: there may be more */
	unsigned size_count;   /* further sizes are in the sums only */
	struct other_size sizes[OTHER_SIZES];
};

/*
 * Looks for each of them, counts, and adds the memory that one has to the extents, which are sorted then. glibc: its
 * malloc was found, so the C library is no other. -ENOMEM.
 */
int other_heap_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, bool glibc,
                    struct extents *extents, struct err *e) WARN_UNUSED;

/*
 * Runs find, which looks for where an allocator begins: in any process, so it has a budget of its own, which leaves
 * that of the census as it was. False: it was not found.
 */
typedef bool (*other_heap_find_fn)(void *context);
bool other_heap_search(struct census_memory *memory, other_heap_find_fn find, void *context);

/* The one of so many bytes that was added; NULL: none. */
struct other_size *other_heap_size(struct other_heap *h, uint64_t size);
/* Blocks of a size, and what is free between them. */
void other_heap_add(struct other_heap *h, uint64_t size, uint64_t blocks, uint64_t live, uint64_t kept);
/* Takes blocks away that were added as live and are free, and so many bytes of them that are there, but not more than
 * there are. */
void other_heap_remove(struct other_heap *h, uint64_t size, uint64_t blocks, uint64_t there);
/* The same of blocks that are in caches: as much of them is there as of the size's others. */
void other_heap_remove_cached(struct other_heap *h, uint64_t size, uint64_t blocks);

/*
 * Reads a table of words, of which pages that are not there are passed over: fn gets the words of each page, the first
 * of which is number `index` of the table. It ends, with h->over, where the budget or the time does; else as fn does.
 */
typedef int (*other_heap_words_fn)(void *context, const uint64_t *words, size_t count, uint64_t index, struct err *e);
int other_heap_each_words(struct other_heap *h, struct census_memory *memory, uint64_t table, uint64_t bytes,
                          other_heap_words_fn fn, void *context, struct err *e) WARN_UNUSED;
/* Anonymous memory without a name, or that of brk(2), to be read and written. */
bool other_heap_is_private(const struct mapping *m);
/* Are words behind this one, of a page, mostly 0? So they are in the root of a tree, but for heaps that fill it. */
bool other_heap_is_sparse(const uint64_t words[CENSUS_PAGE / 8], unsigned i);
/* Data and zero data of a module, which begin with this mapping; 0: it has not both. */
uint64_t other_heap_data_bytes(const struct mapping *m);
/* By their size, those with little first: large tables of a program are looked through last. last: the one before;
 * least: bytes. NULL: there is none. */
const struct mapping *other_heap_next_module(const struct maps *maps, const struct mapping *last, uint64_t least);
