/* SPDX-License-Identifier: MIT */
#include "census/reach/reach_settle.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "census/heap/arena_heap.h"
#include "census/heap/chunk_walk.h"
#include "census/heap/tcache.h"
#include "census/reach/reach_roots.h"
#include "host/clocks.h"

#define WINDOW_BYTES (256u << 10)

struct changed {
	uint64_t start, end;
	unsigned every;
};

struct settling {
	struct reach *reach;
	const struct reach_stop *stop;
	struct page_sums *sums;
	uint8_t *window;
	struct changed *list; /* ascending */
	size_t count;
	uint64_t *new; /* blocks that have come since */
	size_t new_count;
};

bool reach_is_locked(const struct reach *r)
{
	const struct glibc_heap *h = &r->heap->glibc;

	census_memory_refresh(r->memory);
	bool locked = (uint32_t)census_memory_word(r->memory, h->glibc.main_arena) != 0;

	for (size_t i = 0; i < h->arena_count && !locked; i++)
		locked = (uint32_t)census_memory_word(r->memory, h->arenas[i]) != 0;
	return locked;
}

static int in_time(const struct reach *r, struct err *e)
{
	return r->over || clock_monotonic_ns() > r->give_up_ns || (r->goes_on && !r->goes_on(r->goes_on_context))
	               ? err_set(e, ETIME, "it would be stopped for too long")
	               : 0;
}

static int add_changed(struct settling *s, uint64_t page, unsigned every, struct err *e)
{
	struct changed *last = s->count ? &s->list[s->count - 1] : NULL;

	if (last && last->end == page && last->every == every) {
		last->end += CENSUS_PAGE;
		return 0;
	}
	if (!grow_list(s->list, s->count))
		return err_set(e, ENOMEM, "no memory for which pages have changed");
	s->list[s->count++] = (struct changed){ page, page + CENSUS_PAGE, every };
	return 0;
}

static int compare_range(struct settling *s, uint64_t start, uint64_t end, unsigned every, struct err *e)
{
	struct target_memory memory = s->reach->memory->memory;
	int rc = 0;

	memory.budget = NULL;
	for (uint64_t at = start; at < end && rc == 0; at += WINDOW_BYTES) {
		const size_t bytes = end - at < WINDOW_BYTES ? end - at : WINDOW_BYTES;
		rc = in_time(s->reach, e);
		rc = rc ?: target_read(&memory, at, s->window, bytes, e);
		for (size_t k = 0; k < bytes && rc == 0; k += CENSUS_PAGE)
			if (!page_sums_same(s->sums, at + k, s->window + k))
				rc = add_changed(s, at + k, every, e);
		s->reach->read_bytes += bytes;
	}
	return rc;
}

/* Which pages are not as they were when they were used, or were not there. */
static int find_changed(struct settling *s, const struct maps *maps, const struct resident_pages *pages, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < maps->count && rc == 0; i++) {
		const struct mapping *m = &maps->list[i];
		const uint64_t from =
			stack_in_use_from(s->stop->threads, s->stop->thread_count, s->reach->memory, maps, m);
		for (size_t k = resident_pages_from(pages, from);
		     k < pages->count && pages->runs[k].start < m->end && rc == 0; k++) {
			const struct page_run *run = &pages->runs[k];
			if (!run->swapped && reach_root_may_hold(m, !run->file))
				rc = compare_range(s, run->start > from ? run->start : from,
				                   run->end < m->end ? run->end : m->end, reach_root_every(m), e);
		}
	}
	return rc;
}

static bool has_changed(const struct settling *s, uint64_t page)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (s->list[middle].end <= page)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->count && s->list[low].start <= page;
}

/* Blocks with mappings of their own, and heaps of arenas, whose headers are not as they were. */
static void find_gone(struct settling *s)
{
	struct reach *r = s->reach;

	for (size_t i = 0; i < r->blocks.count; i++) {
		struct block_part *p = &r->blocks.parts[i];
		const uint64_t page = p->start - p->start % CENSUS_PAGE, base = p->start - p->start % ARENA_HEAP_BYTES;
		struct arena_heap heap;
		if (!p->segment)
			p->gone |= has_changed(s, page) ||
			           !resident_pages_hold(r->memory->pages, page, page + CENSUS_PAGE);
		else if (!p->segment->main)
			p->gone |= !census_memory_read(r->memory, base, &heap, sizeof heap) ||
			           !arena_heap_fits(&heap, base) || heap.arena != p->segment->arena;
	}
}

/*
 * What a pointer led to while the process ran was not this block: it may be in a page that is as it was then, and is
 * not looked at again. So nothing is said of new blocks, and they are looked at as if they were reached.
 */
static void add_new(void *context, uint64_t chunk)
{
	struct settling *s = context;

	if (!grow_list(s->new, s->new_count))
		s->reach->over = true;
	else
		s->new[s->new_count++] = chunk + 16;
}

/* Finds the blocks of changed pages again. */
static int walk_changed(struct settling *s, struct err *e)
{
	struct reach *r = s->reach;
	struct glibc_heap *h = &r->heap->glibc;
	const uint64_t lost = h->lost_bytes;
	int rc = 0;

	for (size_t i = 0, k = 0; i < h->segment_count && rc == 0; i++) {
		struct heap_segment *segment = &h->segments[i];
		const struct block_part *p = block_space_part(&r->blocks, segment->start);
		while (k < s->count && s->list[k].end <= segment->start)
			k++;
		for (size_t n = k; p && !p->gone && n < s->count && s->list[n].start < segment->end && rc == 0; n++) {
			const struct chunk_range range = { segment, s->list[n].start, s->list[n].end };
			rc = chunk_walk_again(h, r->memory, range, add_new, s, e);
			rc = rc ?: in_time(r, e);
		}
	}
	if (rc == 0 && h->lost_bytes > lost)
		return err_set(e, EBUSY, "what its heap has is not known");
	return rc;
}

/* Of a changed range: blocks that were reached, and all that is no block. */
static void look_at_changed(struct reach *r, const struct changed *c)
{
	uint64_t at = c->start;
	struct block b;

	while (at < c->end && !r->over) {
		const size_t i = block_space_from(&r->blocks, at);
		const struct block_part *p = i < r->blocks.count ? &r->blocks.parts[i] : NULL;
		const bool inside = p && p->start <= at;
		uint64_t until = p && p->start > at && p->start < c->end ? p->start
		                 : inside && p->end < c->end             ? p->end
		                                                         : c->end;
		bool look = !inside || p->gone;
		if (inside && !p->gone && block_space_next(p, at, &b)) {
			until = b.start > at ? b.start : b.end;
			until = until < c->end ? until : c->end;
			look = b.start <= at && block_space_is_reached(&r->blocks, b.number);
		} else if (inside && !p->gone) {
			look = true; /* behind the last block that is known */
		}
		if (look)
			reach_range(r, at, until, c->every);
		at = until;
	}
}

static void reach_new(struct settling *s)
{
	for (size_t i = 0; i < s->new_count; i++)
		reach_word(s->reach, s->new[i], REACH_OF_NEW);
	s->new_count = 0;
}

static int settle(struct settling *s, const struct maps *maps, const struct resident_pages *pages, struct err *e)
{
	struct reach *r = s->reach;

	int rc = find_changed(s, maps, pages, e);
	if (rc < 0)
		return rc;
	find_gone(s);
	r->heap->glibc.again_until_ns = r->give_up_ns;
	rc = walk_changed(s, e);
	r->heap->glibc.again_until_ns = 0;
	if (rc < 0)
		return rc;
	heap_lists_follow_again(&r->heap->glibc, r->memory, r->give_up_ns);
	if (r->heap->glibc.contradictions)
		return err_set(e, EBUSY, "its lists of free blocks lead astray");
	for (size_t i = 0; i < s->count; i++)
		look_at_changed(r, &s->list[i]);
	reach_new(s);
	for (size_t i = 0; i < s->stop->word_count; i++)
		reach_word(r, s->stop->words[i], REACH_OF_REGISTERS);
	reach_drain(r);
	for (size_t i = 0; i < s->count; i++)
		reach_pass_over_cached(r, s->list[i].start, s->list[i].end);
	return in_time(r, e);
}

void reach_prepare(struct reach *r)
{
	for (size_t i = 0; i < r->blocks.count; i++)
		if (!r->blocks.parts[i].segment) /* its header */
			reach_range(r, r->blocks.parts[i].start, r->blocks.parts[i].start + 8, 8);
	reach_pass_over_cached(r, 0, UINT64_MAX);
}

uint64_t reach_bytes(const struct reach *r)
{
	const struct resident_pages *pages = r->memory->pages;
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->maps->count; i++) {
		const struct mapping *m = &r->maps->list[i];
		for (size_t k = resident_pages_from(pages, m->start); k < pages->count && pages->runs[k].start < m->end;
		     k++) {
			const struct page_run *run = &pages->runs[k];
			if (!run->swapped && reach_root_may_hold(m, !run->file))
				bytes += (run->end < m->end ? run->end : m->end) -
				         (run->start > m->start ? run->start : m->start);
		}
	}
	return bytes;
}

uint64_t reach_try_reading(struct reach *r, uint64_t bytes)
{
	AUTO_FREE uint8_t *window = malloc(WINDOW_BYTES);
	struct target_memory memory = r->memory->memory;
	uint64_t done = 0;
	volatile uint64_t sum = 0; /* as if it was needed */

	memory.budget = NULL;
	for (size_t i = 0; window && i < r->sums->count; i++)
		for (uint64_t at = r->sums->ranges[i].start; at < r->sums->ranges[i].end; at += WINDOW_BYTES) {
			const uint64_t left = r->sums->ranges[i].end - at;
			const size_t length = left < WINDOW_BYTES ? left : WINDOW_BYTES;
			if (done >= bytes)
				return done;
			if (target_read(&memory, at, window, length, ERR_IGNORED) < 0)
				continue;
			for (size_t k = 0; k < length; k += CENSUS_PAGE)
				sum += page_sum(window + k);
			done += length;
		}
	return done;
}

int reach_settle(struct reach *r, const struct maps *maps, const struct resident_pages *pages,
                 const struct reach_stop *stop, struct err *e)
{
	AUTO_FREE uint8_t *window = malloc(WINDOW_BYTES);
	struct settling s = { .reach = r, .stop = stop, .sums = r->sums, .window = window };

	if (!window)
		return err_set(e, ENOMEM, "no memory for pages that are read");
	r->maps = maps;
	r->memory->pages = pages;
	r->memory->files.maps = maps;
	r->sums = NULL; /* what is read now is not noted */
	r->progress = NULL;
	reach_refresh(r);
	int rc = reach_is_locked(r) ? err_set(e, EAGAIN, "a thread is in malloc") : settle(&s, maps, pages, e);
	reach_new(&s); /* where it failed: the next time they are not new any more */
	r->sums = s.sums;
	free(s.list);
	free(s.new);
	return rc;
}
