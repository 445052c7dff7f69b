/* SPDX-License-Identifier: MIT */
/*
 * --census: what the resident memory of a process is, all of it, while it runs.
 *
 * Only /proc is read, and the first words of what may be a heap of glibc's (arena_heap.h), if their page is there.
 * Nothing is stopped, traced or written, no page is brought in, and nothing is held that a signal would have to undo.
 * So the target may change meanwhile: VmRSS is read before and after, and who shows the sum says how they differ.
 */
#ifndef MEMATTACH_CENSUS_H
#define MEMATTACH_CENSUS_H

#include "census/region_table.h"
#include "process/target.h"

struct census {
	const struct target *target;
	struct maps maps; /* owns the names */
	char (*thread_names)[32];
	size_t threads, stackless; /* whose stack is not known, for instance because they run */
	struct region_table regions;
	uint64_t resident, swapped;     /* sums */
	uint64_t rss_before, rss_after; /* VmRSS */
};

/* Reads it all. census_free afterwards; on failure, too. */
int census_take(struct census *c, const struct target *t, struct err *e) WARN_UNUSED;
void census_free(struct census *c);
/* Bytes that VmRSS has and the sum has not, or the other way round, beyond what VmRSS itself changed. */
uint64_t census_gap(const struct census *c);

#endif
