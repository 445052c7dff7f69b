/* SPDX-License-Identifier: MIT */
/*
 * The heap of jemalloc 5.2 and 5.3, built for addresses of 48 bits, found without symbols. Its pages have 4 KiB, or 64
 * KiB on machines whose kernels may have such, whatever this kernel has.
 *
 * Of each page that is the first or last one of an extent, and of all pages of slabs, a radix tree has an element: its
 * root is an array of words in the zero data of a module, of as many bits as a leaf: 2^18 words, one for each GiB of
 * addresses, or 2^16, one for four; a word leads to a leaf of as many elements, one for each page. An element is the
 * address of the extent's edata_t with its size class and whether it is a slab around it, and in 5.3 its state
 * (rtree.h, edata.h; extent_structs.h of 5.2), and the edata_t has the same, and where the extent is. So root and
 * layout are proved where elements and what they lead to agree. Sizes are those of the classes, of which there are two
 * sets: of the usual quantum of 16 bytes, and of 8 as redis has it.
 *
 * An extent is active (a slab of blocks of one size, with how many are free, or one block), or free: dirty, muzzy or
 * retained. Huge pages of the HPA, which is off unless a program asks for it, are extents, too.
 */
#pragma once

#include "census/allocators/other_heap.h"

/* What a release has where, and the classes that it was built for. */
struct jemalloc_layout {
	const char *release;
	bool state_in_element;
	unsigned state_bits, class_shift, free_shift; /* of an edata_t's first word; the state is below the class */
	unsigned quantum;                             /* bytes */
	unsigned classes;                             /* this one has what has none */
	unsigned small;                               /* so many are of slabs */
	unsigned cached;                              /* of so many at least a thread has a cache */
	unsigned page_log;                            /* 2^page_log bytes of a page */
};
#define JEMALLOC_LAYOUTS 4u /* for each size of a page */
#define JEMALLOC_PAGES 2u
extern const struct jemalloc_layout jemalloc_layouts[JEMALLOC_PAGES][JEMALLOC_LAYOUTS];

static inline uint64_t jemalloc_page(const struct jemalloc_layout *layout)
{
	return 1ull << layout->page_log;
}

/* What an element of the tree says of the extent that a page is in. */
struct jemalloc_element {
	uint64_t edata; /* 0: none */
	unsigned size_class, state;
	bool slab;
};
struct jemalloc_element jemalloc_element_of(uint64_t word);

struct jemalloc_extent {
	uint64_t start, end;
	uint64_t block_bytes; /* of an active one */
	uint64_t blocks;      /* live ones, and of a slab how many there may be */
	uint64_t room;
	bool active;
};
/* The extent by the first words of its edata_t; false: they do not agree with the element. */
bool jemalloc_extent_of(const struct jemalloc_layout *layout, struct jemalloc_extent *x,
                        const struct jemalloc_element *element, const uint64_t words[3]);

/* Of the blocks of a size class. */
uint64_t jemalloc_class_bytes(const struct jemalloc_layout *layout, unsigned size_class);

/* Leaves *h as it is where there is none that can be proved. -ENOMEM. */
int jemalloc_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, struct extents *extents,
                  struct err *e) WARN_UNUSED;
