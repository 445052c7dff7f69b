/* SPDX-License-Identifier: MIT */
/*
 * What the chunks of a heap come to, counted in bytes of memory that is there: live, free beside live ones, free in
 * whole pages; what malloc_trim(0) would give back; which sizes keep pages that are nearly empty.
 */
#pragma once

#include "census/heap/glibc_heap.h"

#define SIZE_CLASSES 1088u /* chunks of up to 16 KiB by their size, then by powers of two */

struct size_figures {
	uint64_t blocks, bytes; /* of chunks */
	uint64_t kept;          /* free memory on sparse pages, shared out among the live blocks on them */
};

struct heap_figures {
	uint64_t resident;
	uint64_t live_blocks, live_bytes; /* with their headers, resident or not */
	uint64_t live;                    /* the part of that which is resident */
	uint64_t beside_live, whole;      /* free and resident: on pages with live blocks, on pages without */
	uint64_t top;                /* free and resident: at the ends of arenas; the part of whole or beside_live */
	uint64_t trim;               /* what malloc_trim(0) would give back */
	uint64_t sparse_pages, kept; /* less than a quarter of them is live */
	struct size_figures sizes[SIZE_CLASSES];
};

/* What malloc_trim would return: after heap_fastbins_follow, before heap_tcaches_follow. */
void heap_figures_trim(struct heap_figures *f, const struct glibc_heap *h, const struct resident_pages *pages);
/* All the rest, after both. -ENOMEM. */
int heap_figures_add(struct heap_figures *f, const struct glibc_heap *h, const struct resident_pages *pages,
                     struct err *e) WARN_UNUSED;
/* A live block of a given size, of which so many bytes are there, in memory of its own. */
void heap_figures_add_block(struct heap_figures *f, uint64_t bytes, uint64_t resident);

unsigned heap_size_class(uint64_t chunk_bytes);
/* What its blocks can hold: "104 bytes", "16.0 KiB .. 32.0 KiB". Returns text. */
#define SIZE_RANGE 40
const char *heap_size_class_format(unsigned size_class, char text[SIZE_RANGE]);
/* The least and the largest chunk of a class. */
uint64_t heap_size_class_least(unsigned size_class);
uint64_t heap_size_class_most(unsigned size_class);
