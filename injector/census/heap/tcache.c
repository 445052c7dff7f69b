/* SPDX-License-Identifier: MIT */
#include "census/heap/tcache.h"

#include "arch/address_bits.h"
#include "host/clocks.h"

#define SMALL_BINS 64u /* for chunks of 32, 48 … bytes; those after them are of several sizes */
#define LEAST_CHUNK 32u
#define BINS_MAX 76u
#define ATTEMPTS 3u
#define KEY_RELEASE 34u
#define LIST_MOST (1u << 20)    /* chunks, where it may be a circle */
#define CACHED_MOST (16u << 20) /* no larger chunk is in a list: glibc_find takes a limit of 8 MiB at most */

static unsigned bin_count(const struct glibc_heap *h)
{
	return h->glibc.release >= 42 ? BINS_MAX : SMALL_BINS;
}

bool tcache_may_be(const struct glibc_heap *h, uint64_t chunk_bytes)
{
	const uint64_t least = (10 * bin_count(h) + 8 + 15) & ~15ull; /* counters of 2 bytes, pointers of 8 */

	return h->glibc.release && chunk_bytes >= least && chunk_bytes <= least + (h->glibc.release >= 42 ? 32 : 16);
}

static uint64_t reveal(const struct glibc_heap *h, uint64_t place, uint64_t value)
{
	return h->glibc.release >= 32 ? value ^ place >> 12 : value;
}

uint64_t heap_fastbin_next(const struct glibc_heap *h, uint64_t chunk, uint64_t next)
{
	return reveal(h, chunk + 16, next);
}

/* Is this a chunk that was walked as live, and of a size that lists have? Its size. */
static uint64_t live_size(const struct glibc_heap *h, uint64_t chunk, struct heap_segment **segment)
{
	*segment = glibc_heap_segment(h, chunk);
	if (!*segment || !heap_marks_begins(&(*segment)->marks, chunk) ||
	    (!h->again_until_ns && heap_marks_is_free(&(*segment)->marks, chunk)))
		return 0;
	/* The end of a longer one is not looked for: it may be far away, and asked for by any number of lists. */
	struct heap_segment near = **segment;
	near.marks.end = near.marks.end - chunk < CACHED_MOST ? near.marks.end : chunk + CACHED_MOST;
	const uint64_t bytes = heap_segment_chunk_end(&near, chunk) - chunk;
	return bytes < CACHED_MOST ? bytes : 0;
}

/* Again, a list may lead to what is marked already, and so for ever. */
static bool is_too_long(struct glibc_heap *h, uint64_t steps)
{
	if (h->again_until_ns &&
	    (steps > LIST_MOST || (steps % 256 == 255 && clock_monotonic_ns() > h->again_until_ns)))
		h->contradictions++;
	else
		return false;
	return true;
}

/*
 * Follows a list of chunks, whose next is a pointer to a block or to a chunk. Each is marked, so it ends. Again, it may
 * lead through chunks that have come since.
 */
static void follow(struct glibc_heap *h, struct census_memory *memory, uint64_t chunk, uint64_t to_chunk, uint64_t size,
                   struct chunk_list *sum)
{
	struct heap_segment *segment;
	uint64_t next;

	for (uint64_t steps = 0; chunk && !is_too_long(h, steps); steps++) {
		const uint64_t bytes = chunk % 16 ? 0 : live_size(h, chunk, &segment);
		const bool is_new = !bytes && h->again_until_ns && chunk % 16 == 0;
		if ((!bytes && !is_new) || (bytes && size && bytes != size) ||
		    !census_memory_read(memory, chunk + 16, &next, sizeof next)) {
			h->contradictions++;
			return;
		}
		if (bytes) {
			heap_marks_free(&segment->marks, chunk);
			sum->blocks++;
			sum->bytes += bytes;
		}
		next = reveal(h, chunk + 16, next);
		chunk = next ? next - to_chunk : 0;
	}
}

static void follow_arena(struct glibc_heap *h, struct census_memory *memory, uint64_t arena)
{
	uint64_t first[GLIBC_FASTBINS];

	if (!census_memory_read(memory, arena + h->glibc.layout->fastbins, first, sizeof first))
		return;
	for (unsigned i = 0; i < GLIBC_FASTBINS; i++)
		follow(h, memory, first[i], 0, LEAST_CHUNK + 16 * i, &h->fast);
}

void heap_fastbins_follow(struct glibc_heap *h, struct census_memory *memory)
{
	if (!h->glibc.release || !h->glibc.layout->fastbins)
		return;
	census_memory_refresh(memory);
	follow_arena(h, memory, h->glibc.main_arena);
	for (size_t i = 0; i < h->arena_count; i++)
		follow_arena(h, memory, h->arenas[i]);
}

/* All its lists must begin with live chunks of their size, and one must not be empty. */
static bool is_tcache(struct glibc_heap *h, const uint16_t *counts, const uint64_t *entries)
{
	struct heap_segment *segment;
	bool any = false;

	for (unsigned i = 0; i < bin_count(h); i++) {
		const uint64_t bytes = entries[i] && entries[i] % 16 == 0 ? live_size(h, entries[i] - 16, &segment) : 0;
		if (entries[i] && (!bytes || (i < SMALL_BINS && bytes != LEAST_CHUNK + 16 * i)))
			return false;
		if (h->glibc.release < 42 &&
		    !counts[i] != !entries[i]) /* from 42 on it counts what there is room for */
			return false;
		any |= entries[i] != 0;
	}
	return any;
}

/* May these be lists, of which some change now? */
static bool may_be_lists(const struct glibc_heap *h, const uint64_t *entries)
{
	for (unsigned i = 0; i < bin_count(h); i++)
		if (entries[i] % 16 || entries[i] >> ADDRESS_BITS)
			return false;
	return true;
}

/* From 2.34 on the second word of what is in a tcache is the same for the whole process. The word of most is it. */
static void learn_key(struct glibc_heap *h, struct census_memory *memory, uint64_t block)
{
	const uint64_t word = h->glibc.release >= KEY_RELEASE ? census_memory_word(memory, block + 8) : 0;

	if (word && word == h->cache_key)
		h->cache_key_votes++;
	else if (word && h->cache_key_votes)
		h->cache_key_votes--;
	else if (word)
		h->cache_key = word;
}

/* 1: it is one, whose lists are in entries; 0: not now; -1: it cannot become one as long as it is the same block. */
static int read_tcache(struct glibc_heap *h, struct census_memory *memory, uint64_t chunk, uint64_t *entries)
{
	const unsigned bins = bin_count(h);
	uint16_t counts[BINS_MAX];

	for (unsigned i = 0; i < ATTEMPTS; i++) { /* its thread may be using it */
		census_memory_refresh(memory);
		if (!census_memory_read(memory, chunk + 16, counts, bins * sizeof *counts) ||
		    !census_memory_read(memory, chunk + 16 + bins * sizeof *counts, entries, bins * sizeof *entries))
			return 0;
		if (is_tcache(h, counts, entries))
			return 1;
		if (!may_be_lists(h, entries))
			return -1;
	}
	return 0;
}

/* False: it is none, and cannot become one as long as it is the same block. */
static bool follow_tcache(struct glibc_heap *h, struct census_memory *memory, uint64_t chunk)
{
	const unsigned bins = bin_count(h);
	uint64_t entries[BINS_MAX];
	const int is_one = read_tcache(h, memory, chunk, entries);

	for (unsigned i = 0; i < bins && is_one > 0; i++)
		if (entries[i])
			learn_key(h, memory, entries[i]);
	if (is_one <= 0)
		return is_one == 0;
	if (h->again_until_ns) /* what is in it is known by its second word */
		return true;
	for (unsigned i = 0; i < bins; i++)
		if (entries[i])
			follow(h, memory, entries[i] - 16, 16, i < SMALL_BINS ? LEAST_CHUNK + 16 * i : 0, &h->cached);
	return true;
}

void heap_tcaches_follow(struct glibc_heap *h, struct census_memory *memory)
{
	if (!h->glibc.release)
		return;
	census_memory_refresh(memory);
	size_t kept = 0;
	for (size_t i = 0; i < h->tcache_count; i++)
		if (follow_tcache(h, memory, h->tcaches[i]))
			h->tcaches[kept++] = h->tcaches[i];
	h->tcache_count = kept;
}

bool tcache_has(const struct glibc_heap *h, struct census_memory *memory, uint64_t second_word)
{
	if (h->glibc.release >= KEY_RELEASE)
		return h->cache_key && second_word == h->cache_key;
	/* Before, it is the address of the tcache. */
	return second_word && second_word % 16 == 0 && second_word >> ADDRESS_BITS == 0 &&
	       tcache_may_be(h, census_memory_word(memory, second_word - 8) & ~7ull);
}

void heap_lists_follow_again(struct glibc_heap *h, struct census_memory *memory, uint64_t until_ns)
{
	const struct chunk_list fast = h->fast, cached = h->cached;

	h->again_until_ns = until_ns;
	h->contradictions = 0;
	heap_fastbins_follow(h, memory);
	for (size_t i = 0; i < h->tcache_count && h->glibc.release && clock_monotonic_ns() <= until_ns; i++)
		(void)follow_tcache(h, memory, h->tcaches[i]);
	h->again_until_ns = 0;
	h->fast = fast;
	h->cached = cached;
}
