/* SPDX-License-Identifier: MIT */
/*
 * What glibc's malloc has free, by its own lists: the bins and fastbins of each arena, and the rest at its end (top).
 * That takes time with the number of free chunks, not with the heap, as a walk of its chunks does. What is in the
 * caches of threads is in no list of an arena.
 *
 * The process runs, and may change a list while it is followed: then the list is followed again.
 */
#pragma once

#include "census/heap/glibc_heap.h"

/* Resident bytes of all free chunks. False: not known, since lists changed all the time, lead elsewhere, or took too
 * long (census_memory_in_time). After glibc_heap_find. */
bool free_lists_sum(const struct glibc_heap *h, struct census_memory *memory, uint64_t *freed);
