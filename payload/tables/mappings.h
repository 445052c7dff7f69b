/* SPDX-License-Identifier: MIT */
/*
 * Which mappings the program has made by functions that are hooked, as ranges: those that are sampled, all of files,
 * and where files were that have gone. The live table knows a mapping by where it begins. But munmap, mremap and mmap
 * with MAP_FIXED may be about any part of one, or about several; and whether what mremap changes is of a file only who
 * has seen it made can say.
 *
 * A mapping has a class, its size as a power of two when it came, and is kept in the group of entries that belongs to
 * the part of the address space where it begins: parts are eight times as large as the mappings of the class. So who
 * looks for a range asks one or two groups of each class that there is; those of a range with more parts than there are
 * groups are all looked at. What its group has no room for is spilled: always looked at.
 *
 * There is a limit, so that a search has one. What has no entry, because it was made before the session, by code whose
 * calls are not seen, or beyond the limit, is known by its beginning alone, by the live table, if it is sampled.
 *
 * An entry is free, busy, or complete. Who makes it busy by compare-and-swap owns it; nobody waits for one that is
 * busy: two threads that change one mapping at once are an error of the program's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MAPPINGS_MAX 16128u /* so many have room at most, fewer where they begin in few groups */
#ifdef MEMATTACH_HOSTED
extern uint64_t mappings_looked_at; /* entries, by all calls */
#endif

/* Whole pages: start <= address < end. */
struct mapping {
	uint64_t start, end;
	bool file;    /* else anonymous memory */
	bool sampled; /* the live table has, or had, a record of it, at start */
	bool plain;   /* neither: what was there before the session has gone */
};

/* The end of a mapping of so many bytes: the kernel rounds them up. */
static inline uint64_t mapping_end(uint64_t start, uint64_t bytes)
{
	return start + ((bytes + 4095) & ~(uint64_t)4095);
}

/* Forgets all; nobody may use them. */
void mappings_init(void);
/* False: no room. */
bool mappings_add(const struct mapping *mapping);
/* One that has part of start … end; a plain one only where there is no other. */
bool mappings_find(uint64_t start, uint64_t end, struct mapping *mapping);
/* How many have; no more than most are looked for. */
uint32_t mappings_count(uint64_t start, uint64_t end, uint32_t most);
/*
 * Takes start … end out of all that have part of it. For each, taken is asked with the mapping as it was. Of one that
 * is sampled it says whether there still is a record of what is left of it, which it has to have changed then: where
 * that begins, the record does.
 */
typedef bool (*mappings_taken)(void *arg, const struct mapping *was, uint64_t start, uint64_t end);
/* How many of what is left had no room. */
uint32_t mappings_take(uint64_t start, uint64_t end, mappings_taken taken, void *arg);
