/* SPDX-License-Identifier: MIT */
#include "census/allocators/jemalloc_caches.h"

#include "arch/address_bits.h"

#define SEARCH_BYTES (256ull << 20) /* of stacks, and of what is beside the heap */
#define CACHES_MAX 10000u
#define PAGE_WORDS (CENSUS_PAGE / 8)
#define CACHE_WORDS (JEMALLOC_BIN_WORDS * JEMALLOC_BINS_MOST + BETWEEN_MOST)

/* Of 5.2: blocks of a stack, and words between bins of small and large classes, with the pointers to both. */
#define SMALL_MOST 200u
#define LARGE_MOST 20u
#define BETWEEN_MOST 24u
#define BETWEEN_POINTERS 7u

/* Where the stack of a bin begins and ends, and how many blocks are in it. */
struct bin {
	uint64_t full, empty;
	uint32_t blocks;
};

static bool bin_of(struct bin *b, const uint64_t words[JEMALLOC_BIN_WORDS])
{
	const uint64_t head = words[0];
	const uint16_t full = (uint16_t)(words[2] >> 16), empty = (uint16_t)(words[2] >> 32);
	const uint16_t used = (uint16_t)(empty - (uint16_t)head), room = (uint16_t)(empty - full);

	if (head < CENSUS_PAGE || head >> ADDRESS_BITS || (head | used | room) % 8 || !room || used > room)
		return false;
	*b = (struct bin){ .full = head + used - room, .empty = head + used, .blocks = used / 8u };
	return true;
}

static bool read_cache(const struct jemalloc_layout *l, const uint64_t *words, size_t count, struct jemalloc_cache *c)
{
	struct bin last = { 0 }, b;

	for (size_t i = 0; i + JEMALLOC_BIN_WORDS <= count && c->bins < JEMALLOC_BINS_MOST; i += JEMALLOC_BIN_WORDS) {
		if (!bin_of(&b, words + i) || (c->bins && b.full != last.empty))
			break;
		c->blocks[c->bins++] = b.blocks;
		last = b;
	}
	c->words = c->bins * JEMALLOC_BIN_WORDS;
	return c->bins >= l->cached;
}

/* A bin of 5.2, whose stack is behind that of the one before, which ends at *end; 0: there is none before. */
static bool add_old_bin(struct jemalloc_cache *c, const uint64_t words[JEMALLOC_BIN_WORDS], unsigned most,
                        uint64_t *end)
{
	const int32_t lowest = (int32_t)words[0], blocks = (int32_t)(words[0] >> 32);
	const uint64_t room = *end ? (words[2] - *end) / 8 : most;

	if (words[2] < CENSUS_PAGE || words[2] >> ADDRESS_BITS || words[2] % 8 || words[2] <= *end || room > most ||
	    lowest < -1 || lowest > blocks || blocks < 0 || (uint64_t)blocks > room)
		return false;
	c->blocks[c->bins++] = (uint32_t)blocks;
	*end = words[2];
	return true;
}

static bool read_old_cache(const struct jemalloc_layout *l, const uint64_t *words, size_t count,
                           struct jemalloc_cache *c)
{
	const size_t between = JEMALLOC_BIN_WORDS * (size_t)l->small, pointers = between + BETWEEN_POINTERS;
	uint64_t end = 0;

	if (pointers + 2 > count)
		return false;
	for (size_t i = 0; i < between; i += JEMALLOC_BIN_WORDS)
		if (!add_old_bin(c, words + i, SMALL_MOST, &end))
			return false;
	const uint64_t large = (words[pointers + 1] - words[pointers]) / 8;
	if (large < pointers + 2 || large > between + BETWEEN_MOST)
		return false;
	c->words = (unsigned)large;
	while (c->words + JEMALLOC_BIN_WORDS <= count && c->bins < JEMALLOC_BINS_MOST &&
	       words[c->words + 2] - end == 8ull * LARGE_MOST && add_old_bin(c, words + c->words, LARGE_MOST, &end))
		c->words += JEMALLOC_BIN_WORDS;
	return true;
}

bool jemalloc_caches_read(const struct jemalloc_layout *layout, const uint64_t *words, size_t count,
                          struct jemalloc_cache *cache)
{
	*cache = (struct jemalloc_cache){ 0 };
	return (layout->state_in_element ? read_cache : read_old_cache)(layout, words, count, cache);
}

struct searching {
	struct other_heap *heap;
	const struct jemalloc_layout *layout;
	struct census_memory *memory;
	const struct extents *extents;
	uint64_t read_bytes;
	unsigned caches;
	uint64_t passed; /* what is before that is of a cache that was found */
};

static void take(struct searching *s, const struct jemalloc_cache *c)
{
	for (unsigned i = 0; i < c->bins; i++)
		other_heap_remove_cached(s->heap, jemalloc_class_bytes(s->layout, i), c->blocks[i]);
}

/* A cache that begins in this page may end in the next one. */
static void look_at_page(struct searching *s, uint64_t page)
{
	uint64_t words[PAGE_WORDS + CACHE_WORDS];
	struct jemalloc_cache cache;
	size_t count = PAGE_WORDS + CACHE_WORDS;

	if (!census_memory_read(s->memory, page, words, 8 * count)) {
		count = PAGE_WORDS;
		if (!census_memory_read(s->memory, page, words, 8 * count))
			return;
	}
	for (size_t i = s->passed > page ? (s->passed - page) / 8 : 0; i < PAGE_WORDS && i < count; i++) {
		if (!jemalloc_caches_read(s->layout, words + i, count - i, &cache) || s->caches == CACHES_MAX)
			continue;
		s->caches++;
		take(s, &cache);
		i += cache.words - 1;
		s->passed = page + 8 * (i + 1);
	}
}

static void look_at_mapping(struct searching *s, const struct mapping *m)
{
	const struct extents *x = s->extents;
	uint64_t at = resident_pages_next(s->memory->pages, m->start);

	while (at < m->end && s->read_bytes < SEARCH_BYTES && census_memory_in_time(s->memory)) {
		const size_t i = extents_from(x, at);
		if (i < x->count && x->list[i].start <= at) {
			at = x->list[i].end;
		} else {
			look_at_page(s, at);
			s->read_bytes += CENSUS_PAGE;
			at += CENSUS_PAGE;
		}
		at = resident_pages_next(s->memory->pages, at);
	}
}

void jemalloc_caches_take(struct other_heap *h, const struct jemalloc_layout *layout, const struct maps *maps,
                          struct census_memory *memory, const struct extents *extents)
{
	struct searching s = { .heap = h, .layout = layout, .memory = memory, .extents = extents };

	census_memory_refresh(memory);
	for (size_t i = 0; i < maps->count; i++)
		if (other_heap_is_private(&maps->list[i]))
			look_at_mapping(&s, &maps->list[i]);
}
