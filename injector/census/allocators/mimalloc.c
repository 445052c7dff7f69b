/* SPDX-License-Identifier: MIT */
#include "census/allocators/mimalloc.h"

#define SEGMENT (32ull << 20)
#define SLICE (64ull << 10)
#define ENTRIES_MAX (SEGMENT / SLICE)
#define ELEMENTS_AT 264u
#define ELEMENT_BYTES 80u
#define HUGE_BLOCK (2ull << 30) /* blocks as large as this and larger have this size */
#define FREED_AT 2840u          /* in a heap: the list of blocks that other threads have freed */
#define HEAPS_MAX 4096u
#define NO_BLOCK_SIZE 1u /* of a span that is being made */
/* Lists are the target's and may lead round and round: a step is charged as so many bytes that are read. */
#define STEP_WORK 32u
#define LOOK_UP_WORK 512u /* … one for which the span of a block is looked up */

enum header_word { USED, COOKIE, SLICES, INFO_SLICES, KIND, ENTRIES, THREAD };

bool mimalloc_segment_of(struct mimalloc_segment *s, uint64_t start, const uint64_t words[MIMALLOC_HEADER_WORDS])
{
	const uint64_t slices = words[SLICES], first = words[INFO_SLICES], entries = words[ENTRIES];

	if (!words[COOKIE] || slices > 1ull << 31 || !first || first >= slices || first > 2 || words[KIND] > 1 ||
	    entries != (slices < ENTRIES_MAX ? slices : ENTRIES_MAX) || words[USED] > entries ||
	    (!words[KIND] && slices != ENTRIES_MAX))
		return false;
	*s = (struct mimalloc_segment){ .start = start,
		                        .slices = slices,
		                        .first = first,
		                        .entries = entries,
		                        .key = words[COOKIE] ^ start,
		                        .huge = words[KIND],
		                        .empty = !words[USED] };
	return true;
}

/* mi_page_t: slice_count and slice_offset; flags, capacity, reserved; free; used and xblock_size; local_free;
 * xthread_free, whose two lowest bits are a state; xheap. */
bool mimalloc_span_of(struct mimalloc_span *x, const struct mimalloc_segment *s, uint64_t slice,
                      const uint64_t words[MIMALLOC_SLICE_WORDS])
{
	const uint64_t capacity = words[1] >> 16 & UINT16_MAX, reserved = words[1] >> 32 & UINT16_MAX;
	const uint64_t used = (uint32_t)words[3], size = words[3] >> 32;

	*x = (struct mimalloc_span){ .slices = (uint32_t)words[0], .block_bytes = size };
	if (!x->slices || words[0] >> 32 || x->slices > s->slices - slice)
		return false;
	if (!size)
		return true;
	if (size == HUGE_BLOCK)
		x->block_bytes = x->slices * SLICE;
	x->blocks = used;
	x->freed_by_others = words[5] & ~3ull;
	x->heap = words[6] & ~7ull;
	return size != NO_BLOCK_SIZE && used <= capacity && capacity <= reserved &&
	       reserved * x->block_bytes <= x->slices * SLICE;
}

struct mimalloc {
	struct other_heap *heap;
	const struct maps *maps;
	struct census_memory *memory;
	struct extents *extents;
	uint64_t key;
	unsigned heap_count;
	uint64_t heaps[HEAPS_MAX]; /* that own pages; of more, what others have freed counts as live */
};

static bool segment_at(struct mimalloc *m, uint64_t at, struct mimalloc_segment *s)
{
	uint64_t words[MIMALLOC_HEADER_WORDS];

	return census_memory_read(m->memory, at + MIMALLOC_HEADER_AT, words, sizeof words) &&
	       mimalloc_segment_of(s, at, words);
}

static bool span_at(struct mimalloc *m, const struct mimalloc_segment *s, uint64_t slice, struct mimalloc_span *x)
{
	uint64_t words[MIMALLOC_SLICE_WORDS];

	return census_memory_read(m->memory, s->start + ELEMENTS_AT + slice * ELEMENT_BYTES, words, sizeof words) &&
	       mimalloc_span_of(x, s, slice, words);
}

/* Do its spans lead to its end, and is one of them in use? */
static bool is_segment(struct mimalloc *m, const struct mimalloc_segment *s)
{
	struct mimalloc_span x;
	bool used = false;
	uint64_t slice;

	for (slice = s->first; slice < s->entries; slice += x.slices) {
		if (!span_at(m, s, slice, &x))
			return false;
		used |= x.block_bytes && x.blocks;
	}
	return used && (s->huge ? slice <= s->slices : slice == s->slices);
}

static bool find(void *context)
{
	struct mimalloc *m = context;
	struct mimalloc_segment s;

	for (size_t i = 0; i < m->maps->count && census_memory_in_time(m->memory); i++) {
		const struct mapping *map = &m->maps->list[i];
		uint64_t at = other_heap_is_private(map)
		                      ? resident_pages_next_multiple(m->memory->pages, map->start, SEGMENT)
		                      : map->end;
		for (; at < map->end; at = resident_pages_next_multiple(m->memory->pages, at + SEGMENT, SEGMENT)) {
			if (!segment_at(m, at, &s) || !is_segment(m, &s))
				continue;
			m->key = s.key;
			return true;
		}
	}
	return false;
}

/* False: the budget is used up. */
static bool may_go_on(struct mimalloc *m, uint64_t work)
{
	m->heap->over |= budget_work(&m->memory->budget, work, ERR_IGNORED) < 0;
	return !m->heap->over;
}

/* How many blocks stand in the list of those that other threads have freed. */
static uint64_t count_freed(struct mimalloc *m, uint64_t start, const struct mimalloc_span *x)
{
	uint64_t count = 0;

	for (uint64_t at = x->freed_by_others; at && count < x->blocks; count++) {
		if (at < start || at >= start + x->slices * SLICE || !may_go_on(m, STEP_WORK))
			break;
		at = census_memory_word(m->memory, at);
	}
	return count;
}

static void note_heap(struct mimalloc *m, uint64_t heap)
{
	unsigned i = m->heap_count;

	while (i > 0 && m->heaps[i - 1] != heap) /* mostly the last one */
		i--;
	if (!i && heap && m->heap_count < HEAPS_MAX)
		m->heaps[m->heap_count++] = heap;
}

static void count_span(struct mimalloc *m, uint64_t start, const struct mimalloc_span *x)
{
	const uint64_t there = resident_pages_sum(m->memory->pages, start, start + x->slices * SLICE);

	if (!x->block_bytes) {
		m->heap->freed += there;
		return;
	}
	const uint64_t blocks = x->blocks - count_freed(m, start, x);
	const uint64_t live = blocks * x->block_bytes < there ? blocks * x->block_bytes : there;
	other_heap_add(m->heap, x->block_bytes, blocks, live, there - live);
	note_heap(m, x->heap);
}

/* The span that a block is in. */
static bool span_of(struct mimalloc *m, uint64_t block, struct mimalloc_span *x)
{
	struct mimalloc_segment s;
	const uint64_t start = block - block % SEGMENT;
	uint64_t slice = (block - start) / SLICE;

	if (!segment_at(m, start, &s) || s.key != m->key)
		return false;
	const uint64_t first = census_memory_word(m->memory, start + ELEMENTS_AT + slice * ELEMENT_BYTES) >> 32;
	slice -= first / ELEMENT_BYTES <= slice ? first / ELEMENT_BYTES : 0;
	return slice >= s.first && span_at(m, &s, slice, x) && x->block_bytes && x->blocks;
}

static void take_block(struct mimalloc *m, uint64_t block, const struct mimalloc_span *x)
{
	const uint64_t there = resident_pages_sum(m->memory->pages, block, block + x->block_bytes);

	(void)other_heap_remove(m->heap, x->block_bytes, 1, there);
}

/* Takes blocks from those that are live which stand in a heap's list: freed by other threads. most: so many more. */
static void take_freed(struct mimalloc *m, uint64_t heap, uint64_t *most)
{
	struct mimalloc_span x;

	for (uint64_t at = census_memory_word(m->memory, heap + FREED_AT); at; at = census_memory_word(m->memory, at)) {
		if (!*most || !may_go_on(m, LOOK_UP_WORK) || !span_of(m, at, &x) || x.heap != heap ||
		    !census_memory_in_time(m->memory))
			break;
		--*most;
		take_block(m, at, &x);
	}
}

/* What lies behind a span that cannot be read is lost. *end: of what was counted, and of the segment. */
static int count_segment(struct mimalloc *m, const struct mimalloc_segment *s, uint64_t *end, struct err *e)
{
	uint64_t slice = s->first;
	struct mimalloc_span x;

	*end = s->start + s->slices * SLICE;
	if (s->empty) {
		m->heap->freed += resident_pages_sum(m->memory->pages, s->start + slice * SLICE, *end);
		slice = s->entries;
	}
	while (slice < s->entries && span_at(m, s, slice, &x)) {
		count_span(m, s->start + slice * SLICE, &x);
		slice += x.slices;
	}
	if (slice < s->entries) {
		const uint64_t until = s->start + slice * SLICE;
		m->heap->lost_bytes += resident_pages_sum(m->memory->pages, until, *end);
		*end = until;
	}
	return extents_add(m->extents,
	                   &(struct extent){ s->start + s->first * SLICE, *end, REGION_ALLOCATOR, m->heap->name, 0 },
	                   e);
}

static int count_mapping(struct mimalloc *m, const struct mapping *map, struct err *e)
{
	uint64_t at = resident_pages_next_multiple(m->memory->pages, map->start, SEGMENT), end;
	struct mimalloc_segment s;
	int rc = 0;

	for (; at < map->end && rc == 0; at = resident_pages_next_multiple(m->memory->pages, end, SEGMENT)) {
		end = at + SEGMENT;
		m->heap->over |= !census_memory_in_time(m->memory);
		if (!may_go_on(m, ENTRIES_MAX * ELEMENT_BYTES))
			break;
		if (segment_at(m, at, &s) && s.key == m->key)
			rc = count_segment(m, &s, &end, e);
	}
	return rc;
}

int mimalloc_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, struct extents *extents,
                  struct err *e)
{
	struct mimalloc m = { .heap = h, .maps = maps, .memory = memory, .extents = extents };
	int rc = 0;

	if (!other_heap_search(memory, find, &m))
		return 0;
	h->name = "mimalloc";
	h->release = "2.0";
	for (size_t i = 0; i < maps->count && rc == 0 && !h->over; i++)
		if (other_heap_is_private(&maps->list[i]))
			rc = count_mapping(&m, &maps->list[i], e);
	uint64_t most = h->live_blocks;
	for (unsigned i = 0; i < m.heap_count && rc == 0 && !h->over; i++)
		take_freed(&m, m.heaps[i], &most);
	return rc;
}
