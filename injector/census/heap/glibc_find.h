/* SPDX-License-Identifier: MIT */
/*
 * glibc's malloc in the target, 2.31 to 2.43, found without symbols: main_arena is data of libc.so.6, or of a static
 * program, from which a word (next) leads to itself or to an arena whose heap is known, and whose bins are circular
 * lists. mp_ is near it, known by the beginning of the heap in it.
 *
 * The release is what the text in the file of the library says. Where it says nothing, or another release, the heap is
 * walked by what all have in common, and lists that differ between releases are not followed. A static program does not
 * say it: that it is 2.35 or later is known by the name of a setting (malloc.hugetlb), and it is read as 2.35.
 */
#pragma once

#include "census/pages/census_memory.h"
#include "maps/maps.h"
#include "process/target.h"

/* Members of struct malloc_state, as offsets. */
struct glibc_layout {
	uint32_t fastbins; /* 0: there are none */
	uint32_t top, bins, next, system_bytes, bytes;
};

struct glibc {
	const struct glibc_layout *layout; /* NULL: not found */
	unsigned release;                  /* 36: glibc 2.36; 0: not known */
	bool or_later;                     /* … or a later one */
	uint64_t main_arena;
	uint64_t heap_start; /* where the chunks of brk's heap begin; 0: not known */
	bool counts_mapped;  /* the next two are known */
	uint64_t mapped_count, mapped_bytes;
};

#define GLIBC_FASTBINS 10u

/* arenas: addresses of the others, sorted. Never fails. */
void glibc_find(struct glibc *g, const struct target *t, const struct maps *maps, struct census_memory *memory,
                const uint64_t *arenas, size_t arena_count);
