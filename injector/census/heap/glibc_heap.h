/* SPDX-License-Identifier: MIT */
/*
 * The arenas of glibc's malloc, the segments of memory that they carve into chunks, and the chunks: which are live, in
 * bins, in fastbins, in the caches of threads (tcache), and the rest at the end of an arena (top).
 */
#pragma once

#include "census/heap/glibc_find.h"
#include "census/heap/heap_marks.h"
#include "census/pages/resident_pages.h"

struct heap_segment {
	uint64_t start, end; /* the first chunk may begin at start */
	uint64_t arena;
	bool main;
	uint64_t top; /* what is from here on is of no chunk that was found */
	struct heap_marks marks;
};

/* Where no chunks were found between chunks: for the marks it is a free one. What of it is there counts as live. */
struct heap_gap {
	uint64_t start, end;
};

struct chunk_list {
	uint64_t blocks, bytes;
};

struct glibc_heap {
	struct glibc glibc;
	uint64_t *arenas; /* but the main one, by address */
	size_t arena_count;
	struct heap_segment *segments; /* by address */
	size_t segment_count;
	uint64_t *tcaches; /* chunks that have the size of one */
	size_t tcache_count;
	uint64_t system_bytes, walked_bytes; /* what the arenas count, and what was walked */
	struct chunk_list fast, cached;      /* in fastbins, in tcaches */
	uint64_t resyncs;                    /* places where the process changed what was being read */
	struct heap_gap *gaps;               /* of them, by address */
	size_t gap_count;
	uint64_t lost_bytes, absent_bytes; /* in gaps; the part of that which is not there */
	uint64_t contradictions;           /* lists that led to no live chunk of their size */
	bool lists_unknown;                /* the release is not known: what is in them counts as live */
	bool over;                         /* the budget is used up: what is not walked counts as live */
	uint64_t cache_key;                /* second word of what is in a tcache, from 2.34 on; 0: not known */
	uint64_t cache_key_votes;
	bool foreign;            /* somebody else has taken parts of brk's heap, which are in no chunk */
	uint64_t again_until_ns; /* lists are followed again, until then at most; 0: for the first time */
};

/* An arena's heap, 64 MiB aligned, and where its memory ends; before glibc_heap_walk. -ENOMEM. */
int glibc_heap_add(struct glibc_heap *h, uint64_t start, uint64_t end, uint64_t arena, struct err *e) WARN_UNUSED;
/* Finds the main arena. -ENOMEM. */
int glibc_heap_find(struct glibc_heap *h, const struct target *t, const struct maps *maps, struct census_memory *memory,
                    struct err *e) WARN_UNUSED;
/* brk's heap, of which next to nothing is there: what it has is not known, for a walk would cost by its length. */
bool glibc_heap_is_reserve(const struct resident_pages *pages, uint64_t start, uint64_t end);
/* Walks all chunks; then glibc_heap_follow and glibc_heap_follow_caches say of further ones that they are free. */
int glibc_heap_walk(struct glibc_heap *h, struct census_memory *memory, struct err *e) WARN_UNUSED;
/* Frees what only knows of single blocks. */
void glibc_heap_keep_figures(struct glibc_heap *h);
void glibc_heap_free(struct glibc_heap *h);

/* The segment that holds an address, or NULL. */
struct heap_segment *glibc_heap_segment(const struct glibc_heap *h, uint64_t address);
/* Is this chunk, which is free by its marks, a gap? */
bool glibc_heap_is_gap(const struct glibc_heap *h, uint64_t chunk);
/* Where the chunk ends that begins there. */
uint64_t heap_segment_chunk_end(const struct heap_segment *s, uint64_t chunk);
