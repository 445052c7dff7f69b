/* SPDX-License-Identifier: MIT */
/*
 * What the resident memory of a process is, in few rows, for the beginning and the end of a dump: a census without
 * looking at each block, within some milliseconds of CPU time. As a census it reads only /proc and pages that are
 * there, and stops nothing.
 *
 * What there is no time for is said by flags (dump_format.h), never left out: small mappings are looked at first, and
 * what is there of the others is what is missing from the kernel's sums.
 */
#pragma once

#include "census/heap/census_heap.h"
#include "census/pages/quick_scan.h"
#include "dump_format.h"
#include "process/target.h"

#define MEMORY_LOOK_PAGES_NS 60000000u       /* of CPU time: to find the pages, 12 to 30 ns for each of 4 KiB */
#define MEMORY_LOOK_PAGES_MOST_NS 800000000u /* where there are many: 10 ms for each GiB that is there */

struct memory_look_row {
	struct dump_memory row; /* bytes and moment are not filled in */
	char name[DUMP_MEMORY_NAME_MAX];
};

/* Whole, without pointers: one process may take it and another use it. */
struct memory_look {
	struct dump_look look; /* the same */
	char text[DUMP_MEMORY_NAME_MAX];
	uint32_t count;
	struct memory_look_row rows[DUMP_MEMORY_ROWS_MAX + DUMP_MEMORY_KINDS]; /* the largest of each kind first */
};

struct memory_look_wish {
	uint64_t pages_ns; /* of CPU time to find the pages, and half as much more for the rest */
	/* Called with the pages that were found, and with what reads them; NULL: nobody wants them. */
	void (*pages)(void *context, const struct quick_scan *scan, const struct census_heap *heap,
	              struct census_memory *memory);
	void *context;
};

/* How much CPU time it takes to find the pages of a process that has so many resident bytes. */
uint64_t memory_look_pages_ns(uint64_t resident);
int memory_look_take(struct memory_look *l, const struct target *t, const struct memory_look_wish *wish,
                     struct err *e) WARN_UNUSED;
