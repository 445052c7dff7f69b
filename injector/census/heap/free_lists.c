/* SPDX-License-Identifier: MIT */
#include "census/heap/free_lists.h"

#include "census/heap/tcache.h"

#define BINS 127u /* the first is that of chunks which have not been sorted in */
#define LEAST_CHUNK 32u
#define ATTEMPTS 16u
#define CLOCK_EVERY 64u /* chunks */

/* struct malloc_chunk, while it is free. */
struct free_chunk {
	uint64_t previous_bytes, size, next, previous;
};

/* What is there of a chunk that lies in a heap of its arena; false: it does not. */
static bool add_chunk(const struct glibc_heap *h, const struct census_memory *memory, uint64_t arena, uint64_t chunk,
                      uint64_t bytes, uint64_t *sum)
{
	const struct heap_segment *s = chunk % 16 ? NULL : glibc_heap_segment(h, chunk);

	if (!s || s->arena != arena || bytes < LEAST_CHUNK || bytes > s->end - chunk)
		return false;
	*sum += resident_pages_sum(memory->pages, chunk, chunk + bytes);
	return true;
}

/* A circle of chunks which begins and ends at its head in the arena. */
static bool follow_bin(const struct glibc_heap *h, struct census_memory *memory, uint64_t arena, uint64_t head,
                       uint64_t *freed)
{
	uint64_t before = head, at = census_memory_word(memory, head + 16), sum = 0;
	struct free_chunk chunk;

	for (uint64_t n = 1; at != head; n++) {
		if ((n % CLOCK_EVERY == 0 && !census_memory_in_time(memory)) ||
		    !census_memory_read(memory, at, &chunk, sizeof chunk) || chunk.previous != before ||
		    !add_chunk(h, memory, arena, at, chunk.size & ~15ull, &sum))
			return false;
		before = at;
		at = chunk.next;
	}
	*freed += sum;
	return true;
}

static bool follow_fastbin(const struct glibc_heap *h, struct census_memory *memory, uint64_t arena, unsigned bin,
                           uint64_t *freed)
{
	uint64_t chunk = census_memory_word(memory, arena + h->glibc.layout->fastbins + 8 * bin), sum = 0, next;

	for (uint64_t n = 1; chunk; n++) {
		if ((n % CLOCK_EVERY == 0 && !census_memory_in_time(memory)) ||
		    !census_memory_read(memory, chunk + 16, &next, sizeof next) ||
		    !add_chunk(h, memory, arena, chunk, LEAST_CHUNK + 16 * bin, &sum))
			return false;
		chunk = heap_fastbin_next(h, chunk, next);
	}
	*freed += sum;
	return true;
}

/* Again if it fails: it changes while it is followed. */
static bool follow(const struct glibc_heap *h, struct census_memory *memory, uint64_t arena, unsigned bin, bool fast,
                   uint64_t *freed)
{
	for (unsigned i = 0; i < ATTEMPTS && census_memory_in_time(memory); i++) {
		if (i)
			census_memory_refresh(memory);
		if (fast ? follow_fastbin(h, memory, arena, bin, freed)
		         : follow_bin(h, memory, arena, arena + h->glibc.layout->bins + 16 * bin - 16, freed))
			return true;
	}
	return false;
}

static bool add_arena(const struct glibc_heap *h, struct census_memory *memory, uint64_t arena, uint64_t *freed)
{
	const uint64_t top = census_memory_word(memory, arena + h->glibc.layout->top);
	const struct heap_segment *s = glibc_heap_segment(h, top);

	if (s && s->arena == arena)
		*freed += resident_pages_sum(memory->pages, top, s->end);
	for (unsigned i = 0; i < BINS; i++)
		if (!follow(h, memory, arena, i, false, freed))
			return false;
	for (unsigned i = 0; h->glibc.release && h->glibc.layout->fastbins && i < GLIBC_FASTBINS; i++)
		if (!follow(h, memory, arena, i, true, freed))
			return false;
	return true;
}

bool free_lists_sum(const struct glibc_heap *h, struct census_memory *memory, uint64_t *freed)
{
	uint64_t sum = 0;

	if (!h->glibc.layout)
		return false;
	census_memory_refresh(memory);
	if (!add_arena(h, memory, h->glibc.main_arena, &sum))
		return false;
	for (size_t i = 0; i < h->arena_count; i++)
		if (!add_arena(h, memory, h->arenas[i], &sum))
			return false;
	*freed = sum;
	return true;
}
