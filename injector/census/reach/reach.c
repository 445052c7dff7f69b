/* SPDX-License-Identifier: MIT */
#include "census/reach/reach.h"

#include <stdlib.h>
#include <string.h>

#include "arch/address_bits.h"
#include "base/grow.h"
#include "base/now.h"
#include "base/sorted.h"
#include "census/heap/tcache.h"
#include "host/clocks.h"
#include "base/order.h"

#define POINTER_MASK ((1ull << ADDRESS_BITS) - 1) /* the bits above may be a tag: LuaJIT has as many */
#define CACHE_PAGES 1024u
#define AHEAD_PAGES 64u
#define NEAR_BYTES (4 * CENSUS_PAGE)
#define BATCH (1u << 20)          /* blocks */
#define PROGRESS_EVERY (1u << 16) /* blocks */
#define CLOCK_EVERY 256u          /* reads, and blocks */

struct page_cache {
	uint64_t addresses[CACHE_PAGES]; /* + 1 */
	uint8_t pages[CACHE_PAGES][CENSUS_PAGE];
	unsigned reads;
};

int reach_open(struct reach *r, struct census_heap *heap, struct census_memory *memory, const struct maps *maps,
               struct page_sums *sums, struct err *e)
{
	*r = (struct reach){ .heap = heap,
		             .memory = memory,
		             .maps = maps,
		             .sums = sums,
		             .give_up_ns = UINT64_MAX,
		             .give_up_cpu_ns = UINT64_MAX };
	r->cache = calloc(1, sizeof *r->cache);
	if (!r->cache)
		return err_set(e, ENOMEM, "no memory for pages that are read");
	return block_space_open(&r->blocks, heap, e);
}

void reach_close(struct reach *r)
{
	block_space_close(&r->blocks);
	free(r->queue);
	free(r->roots);
	free(r->odd);
	free(r->cache);
	*r = (struct reach){ 0 };
}

void reach_refresh(struct reach *r)
{
	memset(r->cache->addresses, 0, sizeof r->cache->addresses);
}

static void look_at_clock(struct reach *r, size_t count)
{
	if (count % CLOCK_EVERY == 0 &&
	    (clock_monotonic_ns() > r->give_up_ns || now_ns(CLOCK_PROCESS_CPUTIME_ID) > r->give_up_cpu_ns ||
	     (r->goes_on && !r->goes_on(r->goes_on_context))))
		r->over = true;
}

static bool read_pages(struct reach *r, uint64_t page, size_t count)
{
	struct target_memory memory = r->memory->memory;

	memory.budget = NULL; /* time is the limit */
	look_at_clock(r, r->cache->reads++);
	uint8_t *data = r->cache->pages[page / CENSUS_PAGE % CACHE_PAGES];
	if (target_read(&memory, page, data, count * CENSUS_PAGE, ERR_IGNORED) < 0)
		return false;
	if (r->sums)
		page_sums_note(r->sums, page, data, count * CENSUS_PAGE);
	for (size_t i = 0; i < count; i++)
		r->cache->addresses[page / CENSUS_PAGE % CACHE_PAGES + i] = page + i * CENSUS_PAGE + 1;
	r->read_bytes += count * CENSUS_PAGE;
	return true;
}

/* A page, which is read with those that follow it up to `until`; NULL: it is not there. */
static const uint8_t *page_at(struct reach *r, uint64_t page, uint64_t until)
{
	const size_t slot = page / CENSUS_PAGE % CACHE_PAGES;
	const struct resident_pages *pages = r->memory->pages;

	if (r->cache->addresses[slot] == page + 1)
		return r->cache->pages[slot];
	const size_t i = resident_pages_from(pages, page);
	if (i == pages->count || pages->runs[i].start > page || pages->runs[i].swapped)
		return NULL;
	until = until > r->ahead_until ? until : r->ahead_until;
	uint64_t end = until < pages->runs[i].end ? (until + CENSUS_PAGE - 1) / CENSUS_PAGE * CENSUS_PAGE
	                                          : pages->runs[i].end;
	size_t count = (size_t)((end - page) / CENSUS_PAGE);
	count = count < AHEAD_PAGES ? count : AHEAD_PAGES;
	count = count < CACHE_PAGES - slot ? count : CACHE_PAGES - slot;
	memset(&r->cache->addresses[slot], 0, count * sizeof *r->cache->addresses);
	return read_pages(r, page, count) || read_pages(r, page, 1) ? r->cache->pages[slot] : NULL;
}

/* False: there is no memory, or no number left. */
static bool add_reached(struct reach *r, uint32_t number, uint64_t address)
{
	struct reached reached = { number, (uint32_t)r->looked - 1 };

	if (r->queued == REACHED_MAX || r->root_count == REACHED_MAX || !grow_list(r->queue, r->queued) ||
	    (!r->in_block && !grow_list(r->roots, r->root_count)))
		return false;
	if (!r->in_block) {
		reached.parent = REACHED_BY_ROOT | (uint32_t)r->root_count;
		r->roots[r->root_count++] = address;
	}
	r->queue[r->queued++] = reached;
	return true;
}

/*
 * A word of malloc's own, in one of its arenas: it leads to chunks that are free, or to the rest at the end, and so to
 * the ends of blocks that are in front of them, which the program does not know by that.
 */
static bool is_of_malloc(const struct reach *r, uint64_t address)
{
	const struct glibc_heap *h = &r->heap->glibc;
	const size_t i = sorted_before(h->arenas, h->arena_count, sizeof *h->arenas, 0, address, 1);

	return h->glibc.layout && (address - h->glibc.main_arena < h->glibc.layout->bytes ||
	                           (i && address - h->arenas[i - 1] < h->glibc.layout->bytes));
}

bool reach_is_near(const struct reach *r, uint64_t word)
{
	return block_space_near(&r->blocks, word & POINTER_MASK);
}

void reach_word(struct reach *r, uint64_t word, uint64_t address)
{
	uint32_t number;

	word &= POINTER_MASK;
	if (!r->in_block && is_of_malloc(r, address))
		return;
	if (block_space_near(&r->blocks, word) && block_space_reach(&r->blocks, word, &number) &&
	    !add_reached(r, number, address))
		r->over = true;
}

static bool put_off(struct reach *r, uint64_t word, uint64_t address)
{
	if (!r->puts_off || r->in_block || r->odd_count >= REACH_ODD_MAX ||
	    (address % sizeof word == 0 && (word & POINTER_MASK) == word))
		return false;
	if (!grow_list(r->odd, r->odd_count))
		r->over = true;
	else
		r->odd[r->odd_count++] = (struct odd_word){ word, address };
	return true;
}

void reach_odd_words(struct reach *r)
{
	r->puts_off = false;
	for (size_t i = 0; i < r->odd_count && !r->over; i++)
		reach_word(r, r->odd[i].word, r->odd[i].address);
	free(r->odd);
	r->odd = NULL;
	r->odd_count = 0;
}

static void look_at_words(struct reach *r, const uint8_t *data, size_t bytes, unsigned every, uint64_t address)
{
	uint64_t word;

	for (size_t at = 0; at + sizeof word <= bytes; at += every) {
		memcpy(&word, data + at, sizeof word);
		if (block_space_near(&r->blocks, word & POINTER_MASK) && !put_off(r, word, address + at))
			reach_word(r, word, address + at);
	}
}

void reach_range(struct reach *r, uint64_t start, uint64_t end, unsigned every)
{
	uint8_t across[16]; /* the last bytes of a page, and the first of the next one */
	bool has_last = false;

	for (uint64_t at = start, next; at < end && !r->over; at = next) {
		const uint64_t page = at - at % CENSUS_PAGE;
		next = end - page < CENSUS_PAGE ? end : page + CENSUS_PAGE;
		const uint8_t *data = page_at(r, page, end);
		if (data && has_last && next - at >= 8) {
			memcpy(across + 8, data, 8);
			look_at_words(r, across + every, sizeof across - 1 - every, every, page - 8 + every);
		}
		if (data)
			look_at_words(r, data + at % CENSUS_PAGE, next - at, every, at);
		has_last = data && next - at >= 8;
		if (has_last)
			memcpy(across, data + CENSUS_PAGE - 8, 8);
		if (!data) /* a block may be far longer than what is there of it */
			next = resident_pages_next(r->memory->pages, next);
	}
}

ORDER_BY(compare, struct reached, number);

/* From the block at queue[i] on: up to where others are, which are near each other. */
static uint64_t near_until(const struct reach *r, size_t i, size_t end)
{
	uint64_t until = block_space_block(&r->blocks, r->queue[i].number).end;

	for (const uint64_t from = until; i < end && until - from < AHEAD_PAGES * CENSUS_PAGE; i++) {
		const struct block b = block_space_block(&r->blocks, r->queue[i].number);
		if (b.start > until + NEAR_BYTES)
			break;
		until = b.end > until ? b.end : until;
	}
	return until;
}

/* In the order of their addresses, so that a page is read once for many of them. */
static void look_at_batch(struct reach *r, size_t end)
{
	qsort(&r->queue[r->looked], end - r->looked, sizeof *r->queue, compare);
	r->ahead_until = 0;
	while (r->looked < end && !r->over) {
		const struct block b = block_space_block(&r->blocks, r->queue[r->looked].number);
		if (b.start >= r->ahead_until)
			r->ahead_until = near_until(r, r->looked, end);
		r->looked++;
		if (r->progress && r->looked % PROGRESS_EVERY == 0)
			r->progress(r->looked);
		reach_range(r, b.start, b.end, 4);
		look_at_clock(r, r->looked);
	}
}

void reach_drain(struct reach *r)
{
	r->in_block = true;
	while (r->looked < r->queued && !r->over)
		look_at_batch(r, r->queued - r->looked < BATCH ? r->queued : r->looked + BATCH);
	r->in_block = false;
	r->ahead_until = 0;
}

static bool is_cached(struct reach *r, const struct block *b)
{
	const uint64_t at = b->start + 8, page = at - at % CENSUS_PAGE;
	const uint8_t *data = page_at(r, page, page + CENSUS_PAGE);
	uint64_t word;

	if (!data)
		return false;
	memcpy(&word, data + (at - page), sizeof word);
	return tcache_has(&r->heap->glibc, r->memory, word);
}

void reach_pass_over_cached(struct reach *r, uint64_t start, uint64_t end)
{
	struct block b;
	size_t count = 0;

	r->ahead_until = end;
	for (size_t i = block_space_from(&r->blocks, start); i < r->blocks.count && r->blocks.parts[i].start < end;
	     i++) {
		const struct block_part *p = &r->blocks.parts[i];
		uint64_t at = p->start > start ? p->start : start;
		for (; p->segment && !p->gone && at < end && block_space_next(p, at, &b) && b.start < end && !r->over;
		     at = b.end) {
			if (!block_space_is_reached(&r->blocks, b.number) && is_cached(r, &b))
				heap_marks_free(&p->segment->marks, b.start - 16);
			look_at_clock(r, ++count);
		}
	}
	r->ahead_until = 0;
}

/* A chunk whose header is not there any more has gone with its memory. */
static bool is_there(const struct reach *r, const struct block *b)
{
	const uint64_t page = (b->start - 1) / CENSUS_PAGE * CENSUS_PAGE;
	const size_t i = resident_pages_from(r->memory->pages, page);

	return i < r->memory->pages->count && r->memory->pages->runs[i].start <= page;
}

struct reach_figures reach_count(const struct reach *r)
{
	struct reach_figures f = { 0 };
	struct block b;

	for (size_t i = 0; i < r->blocks.count; i++) {
		const struct block_part *p = &r->blocks.parts[i];
		for (uint64_t at = p->start; !p->gone && at < p->end && block_space_next(p, at, &b); at = b.end) {
			f.live_blocks++;
			f.live_bytes += b.end - b.start;
			if (block_space_is_reached(&r->blocks, b.number) || !is_there(r, &b))
				continue;
			f.lost_blocks++;
			f.lost_bytes += b.end - b.start;
		}
	}
	return f;
}

bool reach_is_lost(const struct reach *r, uint64_t start)
{
	const size_t i = block_space_from(&r->blocks, start);
	const struct block_part *p = i < r->blocks.count ? &r->blocks.parts[i] : NULL;
	struct block b;

	return p && p->start <= start && !p->gone && block_space_next(p, start, &b) && b.start == start &&
	       !block_space_is_reached(&r->blocks, b.number) && is_there(r, &b);
}
