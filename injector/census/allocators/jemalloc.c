/* SPDX-License-Identifier: MIT */
#include "census/allocators/jemalloc.h"

#include <string.h>

#include "arch/address_bits.h"
#include "census/allocators/jemalloc_caches.h"

#define ELEMENTS (CENSUS_PAGE / 8)
#define SPANS_MAX 64u /* of those in which there is memory, so many are tried to find the root */
#define PROOFS 8u     /* elements that agree, or more; of three one may lead elsewhere: what is left of freed extents */
#define ZEROS_MAX 512u     /* elements of pages that are not its, before the first that is */
#define LOOKS_MAX 1000000u /* at elements, in each module */
#define ADDRESSES_LOG 48u

enum extent_state { ACTIVE, DIRTY, MUZZY, RETAINED };

/* edata.h, extent_structs.h; sc.h. */
const struct jemalloc_layout jemalloc_layouts[JEMALLOC_PAGES][JEMALLOC_LAYOUTS] = {
	{
		{ "5.3", true, 3, 20, 28, 16, 232, 36, 36, 12 },
		{ "5.3", true, 3, 20, 28, 8, 235, 39, 39, 12 },
		{ "5.2", false, 2, 18, 26, 16, 232, 36, 36, 12 },
		{ "5.2", false, 2, 18, 26, 8, 235, 39, 39, 12 },
	},
	{
		{ "5.3", true, 3, 20, 28, 16, 232, 52, 41, 16 },
		{ "5.3", true, 3, 20, 28, 8, 235, 55, 44, 16 },
		{ "5.2", false, 2, 18, 26, 16, 232, 52, 52, 16 },
		{ "5.2", false, 2, 18, 26, 8, 235, 55, 55, 16 },
	},
};

/* Of the root and of a leaf, rtree.h: both have half of the bits of a page's number. */
static uint64_t leaf_bytes(const struct jemalloc_layout *l)
{
	return 8ull << (ADDRESSES_LOG - l->page_log) / 2;
}

/* Of the addresses that a leaf is for. */
static uint64_t leaf_span(const struct jemalloc_layout *l)
{
	return leaf_bytes(l) / 8 << l->page_log;
}

/* rtree.h: the address has bits 6 to 47, of 64 bytes each; above it is the size class, in bits 2 to 4 the state. */
struct jemalloc_element jemalloc_element_of(uint64_t word)
{
	return (struct jemalloc_element){ .edata = word & 0xffffffffffc0ull,
		                          .size_class = (unsigned)(word >> 48),
		                          .state = word >> 2 & 7,
		                          .slab = word & 1 };
}

/* sc.c: the quantum, twice to four times that, then groups of four, each twice as far apart as those of the group
 * before. Below a quantum of 16 there is 8. */
uint64_t jemalloc_class_bytes(const struct jemalloc_layout *l, unsigned size_class)
{
	const unsigned tiny = l->quantum == 16;
	const unsigned group = (size_class - tiny) / 4, step = (size_class - tiny) % 4;

	if (size_class < tiny)
		return 8;
	return (group ? 2ull * l->quantum << group : 0) + ((step + 1ull) * l->quantum << (group ? group - 1 : 0));
}

/* Of a large block in 5.2 what the last page has for its class may be from before, as of what is free all may be. */
static bool elements_agree(const struct jemalloc_layout *l, const struct jemalloc_element *element, unsigned state,
                           unsigned size_class, bool slab)
{
	const bool active = state == ACTIVE;

	if (!l->state_in_element && !active)
		return element->state == 0 && !slab && size_class == l->classes;
	if (!l->state_in_element)
		return element->state == 0 && slab == element->slab && (!slab || size_class == element->size_class);
	return state == element->state && slab == element->slab &&
	       (size_class == element->size_class || (active ? element->size_class : size_class) == l->classes);
}

/* By a large block, or by a small one that jemalloc's own profiler has sampled. */
static bool is_filled(const struct jemalloc_layout *l, uint64_t extent_bytes, uint64_t block_bytes)
{
	const uint64_t least = 4 * jemalloc_page(l), bytes = block_bytes > least ? block_bytes : least;

	return extent_bytes >= bytes && extent_bytes - bytes <= jemalloc_page(l);
}

/* edata.h: bits of the first word; e_addr, whose offset in its page is chance; e_size_esn. What the element of a freed
 * slab says of its class, and that it is one, is from before. */
bool jemalloc_extent_of(const struct jemalloc_layout *l, struct jemalloc_extent *x,
                        const struct jemalloc_element *element, const uint64_t words[3])
{
	const unsigned state = (unsigned)(words[0] >> (l->class_shift - l->state_bits)) & ((1u << l->state_bits) - 1);
	const unsigned size_class = words[0] >> l->class_shift & 255,
		       free = words[0] >> l->free_shift & ((1u << (l->page_log - 2)) - 1);
	const bool slab = words[0] >> 12 & 1, active = state == ACTIVE;
	const uint64_t bytes = words[2] & ~(jemalloc_page(l) - 1);

	if (state > RETAINED || !elements_agree(l, element, state, size_class, slab) || !bytes ||
	    words[1] >> ADDRESS_BITS || bytes >> ADDRESS_BITS)
		return false;
	*x = (struct jemalloc_extent){ .start = words[1] & ~(jemalloc_page(l) - 1), .active = active };
	x->end = x->start + bytes;
	if (!x->active)
		return true;
	if (size_class >= (slab ? l->small : l->classes))
		return false;
	x->block_bytes = jemalloc_class_bytes(l, size_class);
	x->room = slab ? bytes / x->block_bytes : 1;
	x->blocks = slab ? x->room - free : 1;
	return slab ? bytes % x->block_bytes == 0 && free <= x->room : is_filled(l, bytes, x->block_bytes);
}

struct jemalloc {
	struct other_heap *heap;
	const struct maps *maps;
	struct census_memory *memory;
	struct extents *extents;
	const struct jemalloc_layout *layouts; /* that are tried, all of the same page */
	const struct jemalloc_layout *layout;  /* that was proved */
	uint64_t root;
	uint64_t until; /* extents were counted up to here */
	uint64_t span;  /* of addresses, of the leaf that is counted: its begin */
	unsigned looks;
};

static bool element_at(struct jemalloc *j, uint64_t leaf, uint64_t page, struct jemalloc_element *element)
{
	*element = jemalloc_element_of(
		census_memory_word(j->memory, leaf + (page % leaf_span(j->layouts) >> j->layouts->page_log) * 8));
	return element->edata != 0;
}

static bool extent_at(struct jemalloc *j, const struct jemalloc_layout *layout, const struct jemalloc_element *element,
                      uint64_t page, struct jemalloc_extent *x)
{
	uint64_t words[3];

	return element->size_class <= layout->classes && element->state <= RETAINED &&
	       census_memory_read(j->memory, element->edata, words, sizeof words) &&
	       jemalloc_extent_of(layout, x, element, words) && x->start <= page && page < x->end;
}

/* Elements of a leaf that agree with what they lead to, and that do not, by each layout. */
struct votes {
	unsigned agree[JEMALLOC_LAYOUTS], disagree[JEMALLOC_LAYOUTS];
	unsigned zeros;
};

enum verdict { GOES_ON, PROVED, DISPROVED };

static enum verdict judge(struct jemalloc *j, const struct votes *v, bool last)
{
	unsigned over = 0;

	for (unsigned i = 0; i < JEMALLOC_LAYOUTS; i++) {
		const bool enough = last || v->agree[i] == PROOFS * PROOFS;
		if (enough && v->agree[i] >= PROOFS && v->disagree[i] * 2 <= v->agree[i]) {
			j->layout = &j->layouts[i];
			return PROVED;
		}
		over += enough || v->disagree[i] > 2 + v->agree[i];
	}
	return over == JEMALLOC_LAYOUTS || (!last && v->zeros > ZEROS_MAX) ? DISPROVED : GOES_ON;
}

static void vote(struct jemalloc *j, uint64_t leaf, uint64_t page, struct votes *v)
{
	struct jemalloc_element element;
	struct jemalloc_extent x;
	bool any = false;

	for (unsigned i = 0; i < JEMALLOC_LAYOUTS; i++)
		any |= v->agree[i] > 0;
	if (!element_at(j, leaf, page, &element)) {
		v->zeros += !any;
		return;
	}
	for (unsigned i = 0; i < JEMALLOC_LAYOUTS; i++) {
		const bool agrees = extent_at(j, &j->layouts[i], &element, page, &x);
		v->agree[i] += agrees;
		v->disagree[i] += !agrees;
	}
}

/* Do the elements of a leaf for a span of addresses lead to extents that agree with them? */
static bool leaf_agrees(struct jemalloc *j, uint64_t leaf, uint64_t span)
{
	const uint64_t page = jemalloc_page(j->layouts), end = span + leaf_span(j->layouts);
	struct votes v = { .zeros = 0 };

	for (size_t i = resident_pages_from(j->memory->pages, span); i < j->memory->pages->count; i++) {
		const struct page_run *run = &j->memory->pages->runs[i];
		uint64_t at = run->start > span ? run->start : span;
		for (; at < run->end && at < end; at = (at | (page - 1)) + 1) {
			vote(j, leaf, at, &v);
			const enum verdict verdict = judge(j, &v, ++j->looks > LOOKS_MAX);
			if (verdict != GOES_ON || j->looks > LOOKS_MAX)
				return verdict == PROVED;
		}
		if (run->start >= end)
			break;
	}
	return judge(j, &v, true) == PROVED;
}

/* Spans of addresses in which there is private memory, but for zero data of modules and brk's. */
static size_t list_spans(const struct jemalloc *j, uint64_t spans[SPANS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < j->maps->count && count < SPANS_MAX; i++) {
		const struct mapping *m = &j->maps->list[i];
		const bool zeros = i && m[-1].inode && m[-1].end == m->start;
		const bool may_be = other_heap_is_private(m) && !m->path[0] && !zeros;
		const uint64_t at = may_be ? resident_pages_next(j->memory->pages, m->start) : UINT64_MAX;
		const uint64_t span = at - at % leaf_span(j->layouts);
		if (at < m->end && (!count || spans[count - 1] != span))
			spans[count++] = span;
	}
	return count;
}

/* A word of a module's zero data: may it be that of the root for one of the spans? */
static bool try_word(struct jemalloc *j, uint64_t at, uint64_t word, uint64_t start, uint64_t end,
                     const uint64_t *spans, size_t span_count)
{
	const struct mapping *m = word && word % 64 == 0 ? maps_find(j->maps, word) : NULL;

	if (!m || !other_heap_is_private(m) || m->end - word < leaf_bytes(j->layouts))
		return false;
	for (size_t i = 0; i < span_count; i++) {
		const uint64_t offset = spans[i] / leaf_span(j->layouts) * 8;
		if (at - start < offset || end - (at - offset) < leaf_bytes(j->layouts) ||
		    !leaf_agrees(j, word, spans[i]))
			continue;
		j->root = at - offset;
		return true;
	}
	return false;
}

/* Among words that are mostly 0, or among others, of tables of pointers to anything. */
static bool find_root(struct jemalloc *j, uint64_t start, uint64_t end, bool sparse, const uint64_t *spans,
                      size_t span_count)
{
	uint64_t words[ELEMENTS];

	j->looks = 0;
	for (uint64_t at = resident_pages_next(j->memory->pages, start);
	     at < end && j->looks <= LOOKS_MAX && census_memory_in_time(j->memory);
	     at = resident_pages_next(j->memory->pages, at + CENSUS_PAGE)) {
		if (!census_memory_read(j->memory, at, words, sizeof words))
			continue;
		for (unsigned i = 0; i < ELEMENTS; i++)
			if (other_heap_is_sparse(words, i) == sparse &&
			    try_word(j, at + 8 * i, words[i], start, end, spans, span_count))
				return true;
	}
	return false;
}

/* Those with little data first: large tables of a program are looked through last. */
static bool find_by(struct jemalloc *j, const struct jemalloc_layout *layouts)
{
	const uint64_t least = leaf_bytes(layouts);
	uint64_t spans[SPANS_MAX];
	bool found = false;

	j->layouts = layouts;
	const size_t span_count = list_spans(j, spans);
	for (int sparse = 1; sparse >= 0 && !found; sparse--)
		for (const struct mapping *m = other_heap_next_module(j->maps, NULL, least); m && !found;
		     m = other_heap_next_module(j->maps, m, least))
			found = find_root(j, m->start, m->start + other_heap_data_bytes(m), sparse, spans, span_count);
	return found;
}

static bool find(void *context)
{
	struct jemalloc *j = context;
	bool found = false;

	for (unsigned i = 0; i < JEMALLOC_PAGES && !found; i++)
		if (jemalloc_layouts[i]->page_log <= PAGE_LOG_MOST)
			found = find_by(j, jemalloc_layouts[i]);
	return found;
}

static int count_extent(struct jemalloc *j, const struct jemalloc_extent *x, struct err *e)
{
	const uint64_t there = resident_pages_sum(j->memory->pages, x->start, x->end);
	const uint64_t used = x->room > 1 ? x->blocks * x->block_bytes : x->blocks ? there : 0;
	const uint64_t live = used < there ? used : there;

	j->until = x->end;
	if (x->active)
		other_heap_add(j->heap, x->block_bytes, x->blocks, live, there - live);
	else
		j->heap->freed += there;
	return extents_extend(j->extents, &(struct extent){ x->start, x->end, REGION_ALLOCATOR, j->heap->name, 0 }, e);
}

/* A page of a leaf, that is of elements. An extent is counted at its first page. */
static int count_elements(void *context, const uint64_t *words, size_t count, uint64_t index, struct err *e)
{
	struct jemalloc *j = context;
	struct jemalloc_extent x;
	uint64_t page = j->span + index * jemalloc_page(j->layout);
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++, page += jemalloc_page(j->layout)) {
		const struct jemalloc_element element = jemalloc_element_of(words[i]);
		if (page < j->until || !element.edata)
			continue;
		if (!extent_at(j, j->layout, &element, page, &x))
			j->heap->lost_bytes += element.state == ACTIVE ? jemalloc_page(j->layout) : 0;
		else if (x.start == page)
			rc = count_extent(j, &x, e);
	}
	return rc;
}

static int count_leaf(struct jemalloc *j, uint64_t leaf, uint64_t span, struct err *e)
{
	j->span = span;
	return other_heap_each_words(j->heap, j->memory, leaf, leaf_bytes(j->layout), count_elements, j, e);
}

int jemalloc_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, struct extents *extents,
                  struct err *e)
{
	struct jemalloc j = { .heap = h, .maps = maps, .memory = memory, .extents = extents };
	int rc = 0;

	if (!other_heap_search(memory, find, &j))
		return 0;
	h->name = "jemalloc";
	h->release = j.layout->release;
	const uint64_t end = j.root + leaf_bytes(j.layout);
	for (uint64_t at = j.root; at < end && rc == 0 && !h->over; at += 8) {
		if (at % CENSUS_PAGE < 8 || at == j.root) {
			const uint64_t there = resident_pages_next(memory->pages, at);
			at = there > at ? there + (j.root - there) % 8 : at;
		}
		const uint64_t leaf = at < end ? census_memory_word(memory, at) : 0;
		if (leaf && leaf % 64 == 0 && leaf >> ADDRESS_BITS == 0)
			rc = count_leaf(&j, leaf, (at - j.root) / 8 * leaf_span(j.layout), e);
	}
	extents_sort(extents);
	if (rc == 0)
		jemalloc_caches_take(h, j.layout, maps, memory, extents);
	return rc;
}
