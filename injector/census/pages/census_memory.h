/* SPDX-License-Identifier: MIT */
/*
 * Reading the target's memory for a census: only pages that are there (resident_pages.h), so nothing is brought in.
 * Other pages of files are read from these (mapped_files.h). What has gone meanwhile reads as zeros, or not at all.
 * Reading is charged to a budget: lists and sizes are the target's, and may lead anywhere for ever.
 */
#pragma once

#include "census/pages/mapped_files.h"
#include "census/pages/page_sums.h"
#include "process/target_read.h"

#define CENSUS_CACHE_PAGES 1024u /* a power of two */

struct census_memory {
	struct target_memory memory; /* charged */
	struct budget budget;
	uint64_t until_ns; /* of the CPU time of this thread, then who looks through much ends; 0: any */
	bool time_is_up;
	bool scattered; /* who reads will hardly go on behind a page: nothing is read ahead */
	const struct resident_pages *pages;
	struct page_sums *sums;           /* of what census_memory_read_range reads; NULL: none are noted */
	void (*progress)(uint64_t bytes); /* called now and then while ranges are read, with how much was; NULL: not */
	uint64_t ranges_bytes;
	struct mapped_files files;
	uint64_t *cached; /* addresses of the pages in cache + 1 */
	uint8_t (*cache)[CENSUS_PAGE];
};

/* work: bytes that may be read. census_memory_close after. */
int census_memory_open(struct census_memory *m, const struct target *t, const struct maps *maps,
                       const struct target_memory *memory, const struct resident_pages *pages, uint64_t work,
                       struct err *e) WARN_UNUSED;
void census_memory_close(struct census_memory *m);

/* Few bytes from anywhere, through a cache of pages. False: not all of them are there, or the budget is used up. */
bool census_memory_read(struct census_memory *m, uint64_t address, void *buffer, size_t bytes) WARN_UNUSED;
/* A long range of whole pages, afresh; what is not there becomes zeros. False: the budget is used up. */
bool census_memory_read_range(struct census_memory *m, uint64_t start, void *buffer, size_t bytes) WARN_UNUSED;
/* Text up to its NUL, or what fits; false: none of it is there. */
bool census_memory_read_text(struct census_memory *m, uint64_t address, char *text, size_t size) WARN_UNUSED;
/* 0 where it cannot be read. */
uint64_t census_memory_word(struct census_memory *m, uint64_t address);
/* To be asked from time to time: false, and from then on, when its time is up. */
bool census_memory_in_time(struct census_memory *m);
/* Forgets what is in the cache: the process runs. */
void census_memory_refresh(struct census_memory *m);
