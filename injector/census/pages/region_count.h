/* SPDX-License-Identifier: MIT */
/* How much of each region is there: mappings and what is known of parts of them (extents.h), by their pages. */
#pragma once

#include "census/pages/extents.h"
#include "census/pages/resident_pages.h"
#include "census/pages/stack_owners.h"

struct region_count {
	const struct maps *maps; /* owns the names */
	const struct resident_pages *pages;
	const struct stack_owners *stacks;
	const struct extents *extents;
	struct region_table *table;
	uint64_t resident, swapped, huge; /* sums */
};

/* Adds them all to the table, and sums it up. -ENOMEM. */
int region_count(struct region_count *c, struct err *e) WARN_UNUSED;
/* What a mapping is if nothing is known of its parts; false: it is no part of VmRSS. */
bool region_count_own(const struct region_count *c, size_t mapping, struct region *own);
