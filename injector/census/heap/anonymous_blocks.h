/* SPDX-License-Identifier: MIT */
/*
 * What anonymous memory without a name holds, told by what stands at the beginning of its pages:
 *
 * - a block of glibc's malloc with a mapping of its own: a header that leads to the end of whole pages;
 * - a pool of CPython's allocator for objects of up to 512 bytes (Objects/obmalloc.c), 4 KiB until 3.9, 16 KiB from
 *   3.10 on: the offset of its last block follows from its size class, and its counts agree;
 * - a page or large object of V8's heap (MemoryChunk), 256 KiB aligned: its size, where its area begins and ends;
 * - Go's heap and Java's heap: by where they are, which nobody else chooses.
 *
 * A program may imitate each of them, and is then told that it has one.
 */
#pragma once

#include "census/pages/extents.h"
#include "census/heap/glibc_heap.h"
#include "census/heap/heap_figures.h"
#include "census/heap/python_pools.h"

struct anonymous_blocks {
	struct glibc_heap *glibc; /* a layout: blocks of malloc are looked for */
	struct heap_figures *figures;
	struct python_pools *pools;
	struct extents *extents; /* what is in the first of them is passed over; more are added */
	size_t sorted;           /* how many these are */
	uint64_t mapped_count, mapped_bytes;
	bool java;
};

/* Looks through a private anonymous mapping. -ENOMEM. */
int anonymous_blocks_find(struct anonymous_blocks *b, const struct mapping *m, struct census_memory *memory,
                          struct err *e) WARN_UNUSED;
