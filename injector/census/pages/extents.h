/* SPDX-License-Identifier: MIT */
/* Parts of the address space that are known to be more than their mapping tells: heaps of arenas, blocks, pools. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "census/pages/region_table.h"

struct extent {
	uint64_t start, end;
	enum region_kind kind;
	const char *name; /* "" none; not owned */
	uint64_t address; /* of an arena, else 0 */
};

struct extents {
	struct extent *list; /* after extents_sort: by address, disjoint */
	size_t count;
};

/* -ENOMEM. */
int extents_add(struct extents *x, const struct extent *extent, struct err *e) WARN_UNUSED;
/* As extents_add, but one of the same kind that begins where the one added last ends makes that one longer. */
int extents_extend(struct extents *x, const struct extent *extent, struct err *e) WARN_UNUSED;
/* Sorts; of two that overlap the one that begins first stays. */
void extents_sort(struct extents *x);
/* The first that ends above an address; count: none. After extents_sort. */
size_t extents_from(const struct extents *x, uint64_t address);
void extents_free(struct extents *x);
