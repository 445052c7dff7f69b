/* SPDX-License-Identifier: MIT */
#include "census/allocators/jemalloc_caches.h"

#include "arch/address_bits.h"
#include "census/allocators/jemalloc.h"

#define SEARCH_BYTES (256ull << 20) /* of stacks, and of what is beside the heap */
#define CACHES_MAX 10000u
#define PAGE_WORDS (CENSUS_PAGE / 8)
#define CACHE_WORDS (JEMALLOC_BIN_WORDS * JEMALLOC_BINS_MOST)

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

unsigned jemalloc_caches_read(const uint64_t *words, size_t count, uint32_t blocks[JEMALLOC_BINS_MOST])
{
	struct bin last, b;
	unsigned bins = 0;

	for (size_t i = 0; i + JEMALLOC_BIN_WORDS <= count && bins < JEMALLOC_BINS_MOST; i += JEMALLOC_BIN_WORDS) {
		if (!bin_of(&b, words + i) || (bins && b.full != last.empty))
			break;
		blocks[bins++] = b.blocks;
		last = b;
	}
	return bins < JEMALLOC_BINS_LEAST ? 0 : bins;
}

struct searching {
	struct other_heap *heap;
	struct census_memory *memory;
	const struct extents *extents;
	uint64_t read_bytes;
	unsigned caches;
	uint64_t passed; /* what is before that is of a cache that was found */
};

static void take(struct searching *s, const uint32_t *blocks, unsigned bins)
{
	for (unsigned i = 0; i < bins; i++)
		other_heap_remove_cached(s->heap, jemalloc_class_bytes(i), blocks[i]);
}

/* A cache that begins in this page may end in the next one. */
static void look_at_page(struct searching *s, uint64_t page)
{
	uint64_t words[PAGE_WORDS + CACHE_WORDS];
	uint32_t blocks[JEMALLOC_BINS_MOST];
	size_t count = PAGE_WORDS + CACHE_WORDS;

	if (!census_memory_read(s->memory, page, words, 8 * count)) {
		count = PAGE_WORDS;
		if (!census_memory_read(s->memory, page, words, 8 * count))
			return;
	}
	for (size_t i = s->passed > page ? (s->passed - page) / 8 : 0; i < PAGE_WORDS && i < count; i++) {
		const unsigned bins = jemalloc_caches_read(words + i, count - i, blocks);
		if (!bins || s->caches == CACHES_MAX)
			continue;
		s->caches++;
		take(s, blocks, bins);
		i += bins * JEMALLOC_BIN_WORDS - 1;
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

void jemalloc_caches_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory,
                          const struct extents *extents)
{
	struct searching s = { .heap = h, .memory = memory, .extents = extents };

	census_memory_refresh(memory);
	for (size_t i = 0; i < maps->count; i++)
		if (other_heap_is_private(&maps->list[i]))
			look_at_mapping(&s, &maps->list[i]);
}
