/* SPDX-License-Identifier: MIT */
#include "census/heap/arena_heap.h"

#define PAGE_BYTES 4096u
/* sizeof(struct heap_info), behind which the arena is in its first heap. */
#define INFO_BYTES 32u
#define INFO_BYTES_2_35 48u

static bool holds_arena(uint64_t start, uint64_t arena)
{
	return arena == start + INFO_BYTES || arena == start + INFO_BYTES_2_35;
}

bool arena_heap_fits(const struct arena_heap *h, uint64_t start)
{
	if (start % ARENA_HEAP_BYTES || h->bytes == 0 || h->bytes % PAGE_BYTES || h->accessible_bytes % PAGE_BYTES ||
	    h->bytes > h->accessible_bytes || h->accessible_bytes > ARENA_HEAP_BYTES)
		return false;
	if (!h->previous)
		return holds_arena(start, h->arena);
	return h->previous % ARENA_HEAP_BYTES == 0 && h->previous != start &&
	       holds_arena(h->arena - h->arena % ARENA_HEAP_BYTES, h->arena) && !holds_arena(start, h->arena);
}
