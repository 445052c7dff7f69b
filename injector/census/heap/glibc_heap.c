/* SPDX-License-Identifier: MIT */
#include "census/heap/glibc_heap.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sorted.h"
#include "census/heap/arena_heap.h"
#include "census/heap/chunk_walk.h"
#include "base/order.h"

#define ARENA_HEADER_NEW 48u /* sizeof(struct heap_info) from 2.35 on */
#define RESERVE_BYTES (64ull << 30)
#define RESERVE_TIMES 1024u

static int add_segment(struct glibc_heap *h, const struct heap_segment *s, struct err *e)
{
	if (!grow_list(h->segments, h->segment_count))
		return err_set(e, ENOMEM, "no memory for its heaps");
	h->segments[h->segment_count++] = *s;
	return 0;
}

int glibc_heap_add(struct glibc_heap *h, uint64_t start, uint64_t end, uint64_t arena, struct err *e)
{
	if (arena - arena % ARENA_HEAP_BYTES == start) { /* it is in its first heap */
		if (!grow_list(h->arenas, h->arena_count))
			return err_set(e, ENOMEM, "no memory for its arenas");
		h->arenas[h->arena_count++] = arena;
	}
	return add_segment(h, &(struct heap_segment){ .start = start, .end = end, .arena = arena }, e);
}

/* The chunks of an arena begin after the header of their heap, and after the arena where it is in it. */
static void set_start(struct glibc_heap *h, struct heap_segment *s)
{
	const bool first = s->arena - s->arena % ARENA_HEAP_BYTES == s->start;

	if (first)
		s->start = (s->arena + h->glibc.layout->bytes + 15) & ~15ull;
	else
		s->start += s->arena % ARENA_HEAP_BYTES == ARENA_HEADER_NEW ? 48 : 32;
}

bool glibc_heap_is_reserve(const struct resident_pages *pages, uint64_t start, uint64_t end)
{
	return end - start > RESERVE_BYTES && resident_pages_sum(pages, start, end) < (end - start) / RESERVE_TIMES;
}

static int add_main(struct glibc_heap *h, const struct maps *maps, const struct resident_pages *pages, struct err *e)
{
	const struct mapping *m = maps_find(maps, h->glibc.heap_start);
	const struct mapping *last = m;

	if (!m || strcmp(m->path, "[heap]") != 0)
		return 0;
	while (last + 1 < maps->list + maps->count && last[1].start == last->end && !strcmp(last[1].path, "[heap]"))
		last++;
	if (glibc_heap_is_reserve(pages, h->glibc.heap_start, last->end)) {
		h->glibc = (struct glibc){ 0 };
		h->segment_count = h->arena_count = 0;
		return 0;
	}
	return add_segment(
		h,
		&(struct heap_segment){
			.start = h->glibc.heap_start, .end = last->end, .arena = h->glibc.main_arena, .main = true },
		e);
}

ORDER_BY(compare, struct heap_segment, start);

int glibc_heap_find(struct glibc_heap *h, const struct target *t, const struct maps *maps, struct census_memory *memory,
                    struct err *e)
{
	glibc_find(&h->glibc, t, maps, memory, h->arenas, h->arena_count);
	if (!h->glibc.layout) {
		h->segment_count = h->arena_count = 0;
		return 0;
	}
	size_t kept = 0;
	for (size_t i = 0; i < h->segment_count; i++) {
		set_start(h, &h->segments[i]);
		if (h->segments[i].start + 32 <= h->segments[i].end)
			h->segments[kept++] = h->segments[i];
	}
	h->segment_count = kept;
	int rc = h->glibc.heap_start ? add_main(h, maps, memory->pages, e) : 0;
	if (rc == 0 && h->segment_count)
		qsort(h->segments, h->segment_count, sizeof *h->segments, compare);
	h->lists_unknown = !h->glibc.release;
	return rc;
}

int glibc_heap_walk(struct glibc_heap *h, struct census_memory *memory, struct err *e)
{
	int rc = 0;

	h->system_bytes = census_memory_word(memory, h->glibc.main_arena + h->glibc.layout->system_bytes);
	for (size_t i = 0; i < h->arena_count; i++)
		h->system_bytes += census_memory_word(memory, h->arenas[i] + h->glibc.layout->system_bytes);
	for (size_t i = 0; i < h->segment_count && rc == 0; i++) {
		struct heap_segment *s = &h->segments[i];
		rc = heap_marks_open(&s->marks, s->start, s->end, e);
		rc = rc ?: chunk_walk(h, s, memory, e);
		h->walked_bytes += s->end - s->start;
	}
	return rc;
}

void glibc_heap_keep_figures(struct glibc_heap *h)
{
	for (size_t i = 0; i < h->segment_count; i++)
		heap_marks_close(&h->segments[i].marks);
	free(h->segments);
	free(h->tcaches);
	free(h->gaps);
	h->segments = NULL;
	h->tcaches = NULL;
	h->gaps = NULL;
	h->segment_count = h->tcache_count = h->gap_count = 0;
}

void glibc_heap_free(struct glibc_heap *h)
{
	glibc_heap_keep_figures(h);
	free(h->arenas);
	*h = (struct glibc_heap){ 0 };
}

struct heap_segment *glibc_heap_segment(const struct glibc_heap *h, uint64_t address)
{
	const size_t i = SORTED_UP_TO(h->segments, h->segment_count, start, address);

	return i && address < h->segments[i - 1].end ? &h->segments[i - 1] : NULL;
}

bool glibc_heap_is_gap(const struct glibc_heap *h, uint64_t chunk)
{
	const size_t i = SORTED_UP_TO(h->gaps, h->gap_count, start, chunk);

	return i && h->gaps[i - 1].start == chunk;
}

uint64_t heap_segment_chunk_end(const struct heap_segment *s, uint64_t chunk)
{
	const uint64_t next = heap_marks_next(&s->marks, chunk + 16);

	return next < s->top ? next : s->top;
}
