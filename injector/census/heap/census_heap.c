/* SPDX-License-Identifier: MIT */
#include "census/heap/census_heap.h"

#include <string.h>

#include "base/now.h"
#include "census/heap/arena_heap.h"
#include "census/heap/free_lists.h"
#include "census/heap/tcache.h"

static bool is_anonymous(const struct mapping *m)
{
	struct region r;

	return region_of_mapping(&r, m) && r.kind == REGION_ANONYMOUS && !m->path[0];
}

/* Heaps of arenas may begin at each multiple of their size; the kernel may show them as one mapping with others. */
static int find_arena_heaps(struct census_heap *h, const struct mapping *m, struct census_memory *memory, struct err *e)
{
	struct arena_heap heap;
	int rc = 0;

	for (uint64_t at = resident_pages_next_multiple(memory->pages, m->start, ARENA_HEAP_BYTES);
	     at < m->end && rc == 0;
	     at = resident_pages_next_multiple(memory->pages, at + ARENA_HEAP_BYTES, ARENA_HEAP_BYTES)) {
		if (!census_memory_read(memory, at, &heap, sizeof heap) || !arena_heap_fits(&heap, at))
			continue;
		const uint64_t end = heap.bytes < m->end - at ? at + heap.bytes : m->end;
		const struct extent extent = { at, end, REGION_ARENA, "", heap.arena };
		rc = extents_add(&h->extents, &extent, e);
		rc = rc ?: glibc_heap_add(&h->glibc, extent.start, extent.end, heap.arena, e);
	}
	return rc;
}

static bool has_java(const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const char *slash = strrchr(maps->list[i].path, '/');
		if (slash && !strcmp(slash, "/libjvm.so"))
			return true;
	}
	return false;
}

static int find_blocks(struct census_heap *h, const struct census_heap_source *source, struct err *e)
{
	const struct maps *maps = source->maps;
	struct anonymous_blocks blocks = { .glibc = &h->glibc,
		                           .figures = &h->figures,
		                           .pools = &h->pools,
		                           .extents = &h->extents,
		                           .sorted = h->extents.count,
		                           .java = has_java(maps) };
	int rc = 0;

	for (size_t i = 0; i < maps->count && rc == 0; i++)
		if (is_anonymous(&maps->list[i]) && !source->is_stack(source->stacks, &maps->list[i]))
			rc = anonymous_blocks_find(&blocks, &maps->list[i], source->memory, e);
	h->mapped_count = blocks.mapped_count;
	h->mapped_bytes = blocks.mapped_bytes;
	extents_sort(&h->extents);
	return rc;
}

static int count(struct census_heap *h, struct census_memory *memory, struct err *e)
{
	int rc = glibc_heap_walk(&h->glibc, memory, e);

	if (rc < 0)
		return rc;
	heap_fastbins_follow(&h->glibc, memory);
	heap_figures_trim(&h->figures, &h->glibc, memory->pages);
	heap_tcaches_follow(&h->glibc, memory);
	return heap_figures_add(&h->figures, &h->glibc, memory->pages, e);
}

static int find(struct census_heap *h, const struct census_heap_source *source, struct err *e)
{
	const struct maps *maps = source->maps;
	int rc = 0;

	for (size_t i = 0; i < maps->count && rc == 0; i++)
		if (is_anonymous(&maps->list[i]))
			rc = find_arena_heaps(h, &maps->list[i], source->memory, e);
	extents_sort(&h->extents);
	rc = rc ?: glibc_heap_find(&h->glibc, source->target, maps, source->memory, e);
	return rc;
}

int census_heap_take(struct census_heap *h, const struct census_heap_source *source, struct err *e)
{
	*h = (struct census_heap){ 0 };
	int rc = find(h, source, e);
	if (rc == 0)
		rc = other_heap_take(&h->other, source->maps, source->memory, h->glibc.glibc.layout != NULL,
		                     &h->extents, e);
	rc = rc ?: find_blocks(h, source, e);
	return rc == 0 && h->glibc.glibc.layout ? count(h, source->memory, e) : rc;
}

/* Within seven eighths of the time that is left: what it has is not looked through afterwards. */
static int sketch_other(struct census_heap *h, const struct census_heap_source *source, struct err *e)
{
	struct census_memory *memory = source->memory;
	const uint64_t until_ns = memory->until_ns, now = now_ns(CLOCK_THREAD_CPUTIME_ID);

	memory->until_ns = now < until_ns ? now + (until_ns - now) / 8 * 7 : until_ns;
	int rc = other_heap_take(&h->other, source->maps, memory, h->glibc.glibc.layout != NULL, &h->extents, e);
	memory->until_ns = until_ns;
	memory->time_is_up = false;
	return rc;
}

int census_heap_sketch(struct census_heap *h, const struct census_heap_source *source, struct census_sketch *sketch,
                       struct err *e)
{
	*sketch = (struct census_sketch){ 0 };
	*h = (struct census_heap){ 0 };
	int rc = find(h, source, e);
	rc = rc ?: sketch_other(h, source, e);
	rc = rc ?: find_blocks(h, source, e);
	if (rc < 0)
		return rc;
	sketch->cut = !census_memory_in_time(source->memory) || budget_check(&source->memory->budget, ERR_IGNORED) < 0;
	sketch->knows_free = free_lists_sum(&h->glibc, source->memory, &sketch->freed);
	return 0;
}

void census_heap_free(struct census_heap *h)
{
	glibc_heap_free(&h->glibc);
	extents_free(&h->extents);
}
