/* SPDX-License-Identifier: MIT */
/*
 * What pages of the target had in them when they were read, as a sum of 64 bits for each: who reads one again, while
 * the process stands still, sees whether it is as it was. Two contents have the same sum by chance in one of 2^64
 * cases; a process that forges one gets a wrong report of itself.
 *
 * A page that was read twice with different contents counts as changed ever after: parts of both were used.
 */
#pragma once

#include "census/pages/resident_pages.h"

struct page_range {
	uint64_t start, end;
	uint64_t first; /* number of its first page */
};

struct page_sums {
	struct page_range *ranges; /* of pages that are there, by address */
	size_t count;
	uint64_t *sums; /* by the number of a page; 0: not read, 1: changed */
	uint64_t page_count;
};

/* Room for those that are there and not in swap. -ENOMEM. page_sums_close afterwards; on failure, too. */
int page_sums_open(struct page_sums *s, const struct resident_pages *pages, struct err *e) WARN_UNUSED;
void page_sums_close(struct page_sums *s);

/* Whole pages that were read; what is not in the ranges is passed over. */
void page_sums_note(struct page_sums *s, uint64_t start, const void *data, size_t bytes);
/* The pages of a range, some of which may be in none of the ranges, count as changed from now on. */
void page_sums_forget(struct page_sums *s, uint64_t start, uint64_t end);
/* Is the page that was read now as it was? If not, it counts as changed from now on. */
bool page_sums_same(struct page_sums *s, uint64_t page, const void *data);
/* Of one page, never 0 or 1. */
uint64_t page_sum(const void *page);
