/* SPDX-License-Identifier: MIT */
/*
 * Chunks that are free and do not look so: those in the caches of threads (struct tcache_perthread_struct, itself a
 * chunk of its thread's arena) and in fastbins. Their lists hide each pointer behind its own place from 2.32 on.
 */
#pragma once

#include "census/heap/glibc_heap.h"

/* Is this the size of a chunk that holds a tcache? */
bool tcache_may_be(const struct glibc_heap *h, uint64_t chunk_bytes);
/* The chunk that comes after one in a fastbin; next: the word of it that says so. 0: none. */
uint64_t heap_fastbin_next(const struct glibc_heap *h, uint64_t chunk, uint64_t next);
/* Marks as free what is in fastbins. */
void heap_fastbins_follow(struct glibc_heap *h, struct census_memory *memory);
/* Marks as free what is in tcaches; malloc_trim would leave it. */
void heap_tcaches_follow(struct glibc_heap *h, struct census_memory *memory);
/*
 * While the process stands still, also of what was marked as free before, and until then at the latest: marks as free
 * what is in fastbins, and learns how to know what is in tcaches. Sums of the first time stay, contradictions are those
 * of this time.
 */
void heap_lists_follow_again(struct glibc_heap *h, struct census_memory *memory, uint64_t until_ns);
/*
 * By the second word of a block: is it in a tcache? No block in use is in one, but it may be said of one that malloc
 * has just taken from a fastbin and that nobody has written to.
 */
bool tcache_has(const struct glibc_heap *h, struct census_memory *memory, uint64_t second_word);
