/* SPDX-License-Identifier: MIT */
#include "census/allocators/tcmalloc.h"

#include <stddef.h>
#include <string.h>

#include "arch/address_bits.h"

#define ROOT_WORDS (1u << 17)
#define ROOT_BYTES (8ull * ROOT_WORDS)
#define LEAF_PAGES (1u << 18)
#define LEAF_BYTES (8ull * LEAF_PAGES)
#define LEAF_SPAN ((uint64_t)LEAF_PAGES * TCMALLOC_PAGE)
#define WORDS (CENSUS_PAGE / 8)
#define SIZE_LARGEST 262144
#define CENTRAL_BYTES 1216u /* CentralFreeListPadded: its number, and how many rows of blocks it has */
#define CENTRAL_CLASS 8u
#define CENTRAL_ROWS 1152u
#define CACHE_BYTES 4352u /* ThreadCache: its lists of 32 bytes, and as much as what leads to others is in */
#define CACHE_LISTS 4096u
#define CACHES_MAX 4096u
#define PAGES ((1ull << ADDRESS_BITS) / TCMALLOC_PAGE) /* that there may be */
#define PLACES 64u
#define PROOFS 4u
#define LOOKS_MAX 1000000u
#define ZEROS_MAX 4u /* elements of pages that are not its */

enum location { IN_USE, FREE, RETURNED };

bool tcmalloc_size_map_fits(const struct tcmalloc_size_map *map)
{
	uint64_t i;

	if (map->bytes[0] || map->bytes[1] != 8 || map->bytes[2] != 16 || map->count < 16 ||
	    map->count > TCMALLOC_CLASSES)
		return false;
	for (i = 1; i < map->count; i++)
		if (map->bytes[i] <= map->bytes[i - 1] || map->move[i] < 2 || !map->pages[i] ||
		    map->pages[i] > SIZE_LARGEST || map->pages[i] * TCMALLOC_PAGE < (uint64_t)map->bytes[i])
			return false;
	return map->bytes[i - 1] == SIZE_LARGEST;
}

/* Span: start and length in pages; two links; objects; refcount of 16 bits, sizeclass of 8, location of 2. */
bool tcmalloc_span_of(struct tcmalloc_span *x, const struct tcmalloc_size_map *map, const uint64_t words[6])
{
	const unsigned blocks = words[5] & UINT16_MAX, size_class = words[5] >> 16 & UINT8_MAX,
		       location = words[5] >> 24 & 3;

	if (!words[0] || words[0] >= PAGES || !words[1] || words[1] >= PAGES || location > RETURNED ||
	    size_class >= map->count || (size_class && location != IN_USE))
		return false;
	*x = (struct tcmalloc_span){ .start = words[0] * TCMALLOC_PAGE, .end = (words[0] + words[1]) * TCMALLOC_PAGE };
	if (location != IN_USE)
		return true;
	x->block_bytes = size_class ? (uint64_t)map->bytes[size_class] : x->end - x->start;
	x->blocks = size_class ? blocks : 1;
	return x->blocks * x->block_bytes <= x->end - x->start;
}

struct tcmalloc {
	struct other_heap *heap;
	const struct maps *maps;
	struct census_memory *memory;
	struct extents *extents;
	uint64_t start, end; /* data of its module */
	struct tcmalloc_size_map map;
	uint64_t root, central;
	bool sparse; /* is the root looked for among words that are mostly 0? */
	size_t place_count;
	uint64_t places[PLACES]; /* pages that may have blocks, evenly spread */
	unsigned looks;
	uint64_t until; /* spans were counted up to here */
	uint64_t span;  /* of addresses, of the leaf that is counted: its begin */
	unsigned cache_count;
	uint64_t caches[CACHES_MAX];
	uint64_t cached[TCMALLOC_CLASSES]; /* blocks in caches */
};

/* Calls look for each page of its data that is there, until one says that it has found what it looks for. */
typedef bool (*look_fn)(struct tcmalloc *t, uint64_t at, const uint64_t words[WORDS]);
static bool look_through(struct tcmalloc *t, look_fn look)
{
	uint64_t words[WORDS];

	t->looks = 0;
	for (uint64_t at = resident_pages_next(t->memory->pages, t->start);
	     at < t->end && census_memory_in_time(t->memory);
	     at = resident_pages_next(t->memory->pages, at + CENSUS_PAGE))
		if (census_memory_read(t->memory, at, words, sizeof words) && look(t, at, words))
			return true;
	return false;
}

/* The first sizes lie in two words, of which one may be in the next page: 0 8 16 32 begins in the middle of one. */
static bool look_for_sizes(struct tcmalloc *t, uint64_t at, const uint64_t words[WORDS])
{
	for (unsigned i = 0; i < WORDS; i++)
		if (words[i] == (8 | 16ull << 32) &&
		    census_memory_read(t->memory, at + 8 * i - 4 - offsetof(struct tcmalloc_size_map, bytes), &t->map,
		                       sizeof t->map) &&
		    tcmalloc_size_map_fits(&t->map))
			return true;
	return false;
}

static bool look_for_central(struct tcmalloc *t, uint64_t at, const uint64_t words[WORDS])
{
	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t n = 1;
		while (words[i] == 1 && n < t->map.count &&
		       census_memory_word(t->memory, at + 8 * i + (n - 1) * CENTRAL_BYTES) == n)
			n++;
		if (n < t->map.count)
			continue;
		t->central = at + 8 * i - CENTRAL_CLASS - CENTRAL_BYTES;
		return true;
	}
	return false;
}

static bool span_at(struct tcmalloc *t, uint64_t address, uint64_t page, struct tcmalloc_span *x)
{
	uint64_t words[6];

	return address % 8 == 0 && census_memory_read(t->memory, address, words, sizeof words) &&
	       tcmalloc_span_of(x, &t->map, words) && x->start <= page && page < x->end;
}

/* Do the elements of a leaf for a span of addresses lead to spans that agree with them? */
static bool leaf_agrees(struct tcmalloc *t, uint64_t leaf, uint64_t from)
{
	unsigned agree = 0, disagree = 0, zeros = 0;
	struct tcmalloc_span x;

	for (uint64_t at = resident_pages_next(t->memory->pages, from); at < from - from % LEAF_SPAN + LEAF_SPAN;
	     at = resident_pages_next(t->memory->pages, at - at % TCMALLOC_PAGE + TCMALLOC_PAGE)) {
		const uint64_t page = at - at % TCMALLOC_PAGE;
		const uint64_t element = census_memory_word(t->memory, leaf + page % LEAF_SPAN / TCMALLOC_PAGE * 8);
		if (agree == PROOFS || disagree > 2 + agree || zeros > ZEROS_MAX || ++t->looks > LOOKS_MAX)
			break;
		const bool agrees = element && span_at(t, element, page, &x);
		zeros += !element;
		agree += agrees;
		disagree += element && !agrees;
	}
	return agree && disagree <= agree;
}

/* A word of the root for one of the places where there is memory. */
static bool look_for_root(struct tcmalloc *t, uint64_t at, const uint64_t words[WORDS])
{
	for (unsigned i = 0; i < WORDS && t->looks <= LOOKS_MAX; i++) {
		const bool may_be = words[i] && words[i] % 8 == 0 && other_heap_is_sparse(words, i) == t->sparse;
		const struct mapping *m = may_be ? maps_find(t->maps, words[i]) : NULL;
		for (size_t k = 0;
		     m && other_heap_is_private(m) && m->end - words[i] >= LEAF_BYTES && k < t->place_count; k++) {
			const uint64_t offset = t->places[k] / LEAF_SPAN * 8, word = at + 8 * i;
			if (word - t->start < offset || t->end - (word - offset) < ROOT_BYTES ||
			    !leaf_agrees(t, words[i], t->places[k]))
				continue;
			t->root = word - offset;
			return true;
		}
	}
	return false;
}

/* Private pages, evenly spread: much of what it has is metadata, which no element leads to. */
static void list_places(struct tcmalloc *t)
{
	const struct resident_pages *p = t->memory->pages;
	uint64_t all = 0, passed = 0, next = 0;

	for (size_t i = 0; i < p->count; i++)
		all += p->runs[i].swapped || p->runs[i].file ? 0 : p->runs[i].end - p->runs[i].start;
	const uint64_t step = all / PLACES / CENSUS_PAGE * CENSUS_PAGE + CENSUS_PAGE;
	for (size_t i = 0; i < p->count; i++) {
		const struct page_run *run = &p->runs[i];
		const uint64_t bytes = run->swapped || run->file ? 0 : run->end - run->start;
		for (; t->place_count < PLACES && next < passed + bytes; next += step)
			t->places[t->place_count++] = run->start + (next - passed);
		passed += bytes;
	}
}

/* Such a build keeps what was freed for a while, to check it: nothing tells these blocks from live ones. */
static bool is_of_debug_build(const struct mapping *m)
{
	const char *slash = strrchr(m->path, '/');
	const char *name = slash ? slash : m->path;

	return strstr(name, "tcmalloc") && strstr(name, "_debug");
}

static bool find(void *context)
{
	struct tcmalloc *t = context;

	list_places(t);
	for (const struct mapping *m = other_heap_next_module(t->maps, NULL, ROOT_BYTES); m;
	     m = other_heap_next_module(t->maps, m, ROOT_BYTES)) {
		t->start = m->start;
		t->end = m->start + other_heap_data_bytes(m);
		if (is_of_debug_build(m) || !look_through(t, look_for_sizes) || !look_through(t, look_for_central))
			continue;
		t->sparse = true;
		bool found = look_through(t, look_for_root);
		t->sparse = false;
		if (found || look_through(t, look_for_root))
			return true;
	}
	return false;
}

static int count_span(struct tcmalloc *t, const struct tcmalloc_span *x, struct err *e)
{
	const uint64_t there = resident_pages_sum(t->memory->pages, x->start, x->end);
	const uint64_t live = x->blocks * x->block_bytes < there ? x->blocks * x->block_bytes : there;

	t->until = x->end;
	if (x->block_bytes)
		other_heap_add(t->heap, x->block_bytes, x->blocks, live, there - live);
	else
		t->heap->freed += there;
	return extents_extend(t->extents, &(struct extent){ x->start, x->end, REGION_ALLOCATOR, t->heap->name, 0 }, e);
}

/* A page of a leaf. Elements inside of a span are of it, or from before. */
static int count_elements(void *context, const uint64_t *words, size_t count, uint64_t index, struct err *e)
{
	struct tcmalloc *t = context;
	struct tcmalloc_span x;
	uint64_t page = t->span + index * TCMALLOC_PAGE;
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++, page += TCMALLOC_PAGE) {
		if (page < t->until || !words[i])
			continue;
		if (span_at(t, words[i], page, &x) && x.start == page)
			rc = count_span(t, &x, e);
		else
			t->heap->lost_bytes += resident_pages_sum(t->memory->pages, page, page + TCMALLOC_PAGE);
	}
	return rc;
}

static int count_leaf(struct tcmalloc *t, uint64_t leaf, uint64_t span, struct err *e)
{
	t->span = span;
	return other_heap_each_words(t->heap, t->memory, leaf, LEAF_BYTES, count_elements, t, e);
}

/* Has each of its lists the size of its class? Then what is in them is noted. */
static bool is_cache(struct tcmalloc *t, uint64_t address, uint64_t words[CACHE_BYTES / 8])
{
	if (!address || address % 64 || !census_memory_read(t->memory, address, words, CACHE_BYTES))
		return false;
	for (uint64_t i = 1; i < t->map.count; i++)
		if ((int32_t)words[4 * i + 3] != t->map.bytes[i])
			return false;
	return true;
}

static void note_cache(struct tcmalloc *t, uint64_t address)
{
	uint64_t words[CACHE_BYTES / 8];

	for (unsigned i = 0; i < t->cache_count; i++)
		if (t->caches[i] == address)
			return;
	if (t->cache_count == CACHES_MAX || !is_cache(t, address, words))
		return;
	t->caches[t->cache_count++] = address;
	for (uint64_t i = 1; i < t->map.count; i++)
		t->cached[i] += (uint32_t)words[4 * i + 1];
}

static bool look_for_cache(struct tcmalloc *t, uint64_t at, const uint64_t words[WORDS])
{
	(void)at;
	for (unsigned i = 0; i < WORDS && !t->cache_count; i++)
		note_cache(t, words[i]);
	return t->cache_count > 0;
}

/* What leads from one to the next stands behind its lists. */
static void follow_caches(struct tcmalloc *t)
{
	if (!look_through(t, look_for_cache))
		return;
	for (unsigned i = 0; i < t->cache_count; i++)
		for (unsigned k = CACHE_LISTS; k < CACHE_BYTES; k += 8)
			note_cache(t, census_memory_word(t->memory, t->caches[i] + k));
}

/* Takes away what is in caches, of threads and central ones. */
static void take_cached(struct tcmalloc *t)
{
	census_memory_refresh(t->memory);
	follow_caches(t);
	for (uint64_t i = 1; i < t->map.count; i++) {
		const uint64_t bytes = (uint64_t)t->map.bytes[i];
		const uint64_t rows =
			(uint32_t)census_memory_word(t->memory, t->central + i * CENTRAL_BYTES + CENTRAL_ROWS);
		const uint64_t blocks = t->cached[i] + rows * (uint32_t)t->map.move[i];
		other_heap_remove_cached(t->heap, bytes, blocks);
	}
}

int tcmalloc_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, struct extents *extents,
                  struct err *e)
{
	struct tcmalloc t = { .heap = h, .maps = maps, .memory = memory, .extents = extents };
	int rc = 0;

	if (!other_heap_search(memory, find, &t))
		return 0;
	h->name = "tcmalloc";
	h->release = "2.10";
	for (uint64_t i = 0; i < ROOT_WORDS && rc == 0 && !h->over; i++) {
		const uint64_t at = t.root + 8 * i,
			       there = at % CENSUS_PAGE < 8 || !i ? resident_pages_next(memory->pages, at) : at;
		if (there - at >= CENSUS_PAGE) {
			i += (there - at < ROOT_BYTES - 8 * i ? there - at : ROOT_BYTES - 8 * i) / 8 - 1;
			continue;
		}
		const uint64_t leaf = census_memory_word(memory, at);
		if (leaf && leaf % 8 == 0 && leaf >> ADDRESS_BITS == 0)
			rc = count_leaf(&t, leaf, i * LEAF_SPAN, e);
	}
	if (rc == 0)
		take_cached(&t);
	return rc;
}
