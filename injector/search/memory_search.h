/* SPDX-License-Identifier: MIT */
/*
 * The words of a process's memory, of the pages that are there (page_scan.h): the one search of memory. Who searches
 * says which mappings and pages are worth it, when to stop, and what is looked for. Memory that cannot be read is
 * passed over: it is being unmapped, or lies beyond the end of its file.
 */
#pragma once

#include "search/page_scan.h"
#include "process/target_read.h"

enum memory_run {
	MEMORY_RUN_READ,
	MEMORY_RUN_PASSED,
	MEMORY_RUN_CHANGED, /* something was done that may have changed it: it is to be asked for again */
};

struct memory_search {
	const struct target_memory *memory;
	struct page_scan *pages; /* open */
	void *context;
	bool (*is_over)(void *context);                          /* a limit is reached; asked before each piece */
	bool (*mapping)(void *context, const struct mapping *m); /* is it to be searched? */
	enum memory_run (*run)(void *context, const struct page_run *run);
	bool (*words)(void *context, const uint64_t *words, uint64_t start, size_t count); /* true: found, the end */
};

/* 0: found, searched, or over. */
int memory_search(const struct memory_search *s, const struct target *t, const struct maps *maps,
                  struct err *e) WARN_UNUSED;
