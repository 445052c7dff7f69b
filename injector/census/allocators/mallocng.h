/* SPDX-License-Identifier: MIT */
/*
 * The heap of musl's malloc (mallocng, since 1.2.1), found without symbols: its context begins with a secret, which
 * each of the areas of descriptors that it leads to repeats (malloc/mallocng/meta.h).
 *
 * A descriptor has a group of up to 32 slots of one size, with masks of those that are free; the group leads back to
 * it. A group is a mapping, or lies in a slot of a larger group: that slot is then no block of the program's.
 */
#pragma once

#include "census/allocators/other_heap.h"

struct mallocng_group {
	uint64_t start, end;  /* its mapping; end 0: it has none */
	uint64_t slot_bytes;  /* of each, with its header of four bytes */
	unsigned slots, used; /* how many there are, and how many are not free */
};
/* By the words of a descriptor behind its links: group, masks, slots and size. False: there is none. */
bool mallocng_group_of(struct mallocng_group *g, const uint64_t words[3]);

/* Leaves *h as it is where there is none. -ENOMEM. */
int mallocng_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, struct extents *extents,
                  struct err *e) WARN_UNUSED;
