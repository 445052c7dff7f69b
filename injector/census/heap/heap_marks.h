/* SPDX-License-Identifier: MIT */
/*
 * Where the chunks of a heap begin and which of them are free: two bits for each 16 bytes, 1.6 % of the heap, in pages
 * that are only there once a bit in them is set. A chunk ends where the next one begins. Of each 64 words of these bits
 * one more word says which may have any, and so once more, so that a long chunk is passed in a few steps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct heap_marks {
	uint64_t start, end;     /* multiples of 16 */
	uint64_t *begins, *free; /* bits */
	size_t bytes;            /* of each */
	uint64_t *words, *pages; /* bits: words of begins, and words of words, in which one was set */
	size_t mapped;           /* bytes of all */
};

int heap_marks_open(struct heap_marks *m, uint64_t start, uint64_t end, struct err *e) WARN_UNUSED;
void heap_marks_close(struct heap_marks *m);

void heap_marks_begin(struct heap_marks *m, uint64_t chunk, bool is_free);
void heap_marks_free(struct heap_marks *m, uint64_t chunk);
/* Takes back all from chunk on, up to end. */
void heap_marks_clear(struct heap_marks *m, uint64_t chunk, uint64_t end);
/* Does a chunk begin there? */
bool heap_marks_begins(const struct heap_marks *m, uint64_t address);
bool heap_marks_is_free(const struct heap_marks *m, uint64_t chunk);
/* The first chunk at or after an address; m->end: none. */
uint64_t heap_marks_next(const struct heap_marks *m, uint64_t address);
/* The last chunk before an address; 0: none. */
uint64_t heap_marks_previous(const struct heap_marks *m, uint64_t address);
