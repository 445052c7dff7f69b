/* SPDX-License-Identifier: MIT */
/*
 * Which pages of the target are there, as one look has found them: 24 bytes for each run of pages that are alike. All
 * that a census reads of the target's memory is asked for here first, so that nothing is brought in by reading it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "search/page_scan.h"

#define CENSUS_PAGE 4096u

struct resident_pages {
	struct page_run *runs; /* ascending, disjoint */
	size_t count;
};

/* Adds a run that is after all others. -ENOMEM. */
int resident_pages_add(struct resident_pages *p, const struct page_run *run, struct err *e) WARN_UNUSED;
void resident_pages_free(struct resident_pages *p);

/* The first run that ends above an address; p->count: none. */
size_t resident_pages_from(const struct resident_pages *p, uint64_t address);
/* Bytes of a range that are there, and not in swap. */
uint64_t resident_pages_sum(const struct resident_pages *p, uint64_t start, uint64_t end);
/* Is all of the range there? */
bool resident_pages_hold(const struct resident_pages *p, uint64_t start, uint64_t end);
/* The first address from `from` on that is there; UINT64_MAX: none. */
uint64_t resident_pages_next(const struct resident_pages *p, uint64_t from);
/* The same, of multiples of so many bytes: a reservation of any size costs no more than its pages that are there. */
uint64_t resident_pages_next_multiple(const struct resident_pages *p, uint64_t from, uint64_t bytes);
