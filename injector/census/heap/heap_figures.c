/* SPDX-License-Identifier: MIT */
#include "census/heap/heap_figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"

#define EXACT_CLASSES 1025u    /* chunks of 0, 16 … 16384 bytes */
#define EXACT_LOG 14u          /* 2^14 is the largest of them */
#define CHUNK_STRUCT_BYTES 48u /* sizeof(struct malloc_chunk): mtrim leaves so much of a free chunk */
#define LEAST_CHUNK 32u
#define SPARSE_BYTES (CENSUS_PAGE / 4)
#define IS_THERE 0x8000u /* beside the live bytes of a page, which are 4096 at most */

unsigned heap_size_class(uint64_t chunk_bytes)
{
	if (chunk_bytes / 16 < EXACT_CLASSES && chunk_bytes <= 16384)
		return (unsigned)(chunk_bytes / 16);
	return EXACT_CLASSES + 63u - (unsigned)__builtin_clzll(chunk_bytes - 1) - EXACT_LOG;
}

uint64_t heap_size_class_least(unsigned size_class)
{
	return size_class < EXACT_CLASSES ? 16ull * size_class : (1ull << (EXACT_LOG + size_class - EXACT_CLASSES)) + 1;
}

uint64_t heap_size_class_most(unsigned size_class)
{
	return size_class < EXACT_CLASSES ? 16ull * size_class : 2ull << (EXACT_LOG + size_class - EXACT_CLASSES);
}

const char *heap_size_class_format(unsigned size_class, char text[SIZE_RANGE])
{
	const uint64_t least = heap_size_class_least(size_class), most = heap_size_class_most(size_class);
	char from[SIZE_TEXT], to[SIZE_TEXT];

	if (least == most)
		snprintf(text, SIZE_RANGE, "%" PRIu64 " bytes", least - 8);
	else
		snprintf(text, SIZE_RANGE, "%s .. %s", size_format((double)least, from), size_format((double)most, to));
	return text;
}

static uint64_t page_floor(uint64_t at)
{
	return at - at % CENSUS_PAGE;
}

static uint64_t page_ceiling(uint64_t at)
{
	return page_floor(at + CENSUS_PAGE - 1);
}

/* malloc/malloc.c: mtrim() gives back the whole pages of a free chunk behind its header, systrim() the end of brk. */
static uint64_t trimmed(const struct heap_segment *s, const struct resident_pages *pages, uint64_t start, uint64_t end)
{
	const bool at_top = end == s->end;

	if (!at_top) {
		start = page_ceiling(start + CHUNK_STRUCT_BYTES);
		end = page_floor(end);
	} else if (s->main && end - start > LEAST_CHUNK + 1) {
		start = end - page_floor(end - start - LEAST_CHUNK - 1);
	} else {
		return 0;
	}
	return start < end ? resident_pages_sum(pages, start, end) : 0;
}

void heap_figures_trim(struct heap_figures *f, const struct glibc_heap *h, const struct resident_pages *pages)
{
	for (size_t i = 0; i < h->segment_count; i++) {
		const struct heap_segment *s = &h->segments[i];
		uint64_t start = 0;
		/* Chunks in fastbins are merged with their free neighbours, and with the top. */
		for (uint64_t at = heap_marks_next(&s->marks, s->start); at < s->top;
		     at = heap_segment_chunk_end(s, at)) {
			const bool is_free = heap_marks_is_free(&s->marks, at) && !glibc_heap_is_gap(h, at);
			if (!is_free && start)
				f->trim += trimmed(s, pages, start, at);
			start = !is_free ? 0 : start ? start : at;
		}
		if (s->top < s->end || start)
			f->trim += trimmed(s, pages, start ? start : s->top, s->end);
	}
}

/* Calls for each page of a chunk: the bytes that it has on it. */
#define FOR_PAGES(at, bytes, start, end)                                                                               \
	for (uint64_t at = (start), bytes;                                                                             \
	     at < (end) &&                                                                                             \
	     (bytes = page_floor(at) + CENSUS_PAGE < (end) ? page_floor(at) + CENSUS_PAGE - at : (end)-at);            \
	     at += bytes)

struct counting {
	struct heap_figures *figures;
	const struct glibc_heap *heap;
	const struct heap_segment *segment;
	uint64_t first; /* page */
	size_t page_count;
	uint16_t *live; /* bytes of each page, and IS_THERE */
};

static void note_resident(struct counting *c, const struct resident_pages *pages)
{
	const uint64_t start = c->first * CENSUS_PAGE, end = start + c->page_count * CENSUS_PAGE;

	for (size_t i = resident_pages_from(pages, start); i < pages->count && pages->runs[i].start < end; i++)
		for (uint64_t at = pages->runs[i].start > start ? pages->runs[i].start : start;
		     at < pages->runs[i].end && at < end && !pages->runs[i].swapped; at += CENSUS_PAGE)
			c->live[at / CENSUS_PAGE - c->first] = IS_THERE;
}

/* Of pages that are there: a block may be said to be larger than all memory. */
static void count_live(struct counting *c, uint64_t start, uint64_t end)
{
	FOR_PAGES(at, bytes, start, end)
	if (c->live[at / CENSUS_PAGE - c->first] & IS_THERE)
		c->live[at / CENSUS_PAGE - c->first] += (uint16_t)bytes;
}

static void count_pages(struct counting *c)
{
	struct heap_figures *f = c->figures;

	for (size_t i = 0; i < c->page_count; i++) {
		const uint64_t live = c->live[i] & ~IS_THERE;
		if (!(c->live[i] & IS_THERE))
			continue;
		f->resident += CENSUS_PAGE;
		f->live += live;
		*(live ? &f->beside_live : &f->whole) += CENSUS_PAGE - live;
		if (live && live < SPARSE_BYTES) {
			f->sparse_pages++;
			f->kept += CENSUS_PAGE - live;
		}
	}
}

/* By its size: how much there is, and what it keeps. */
static void count_size(struct counting *c, uint64_t start, uint64_t end)
{
	struct size_figures *size = &c->figures->sizes[heap_size_class(end - start)];

	size->blocks++;
	size->bytes += end - start;
	c->figures->live_blocks++;
	c->figures->live_bytes += end - start;
	FOR_PAGES(at, bytes, start, end)
	{
		const uint16_t page = c->live[at / CENSUS_PAGE - c->first];
		const uint64_t live = page & ~IS_THERE;
		if (page & IS_THERE && live < SPARSE_BYTES && live)
			size->kept += (CENSUS_PAGE - live) * bytes / live;
	}
}

static void count_segment(struct counting *c, const struct resident_pages *pages)
{
	const struct heap_segment *s = c->segment;

	note_resident(c, pages);
	count_live(c, page_floor(s->start), s->start); /* the arena itself */
	for (unsigned pass = 0; pass < 2; pass++) {
		for (uint64_t at = heap_marks_next(&s->marks, s->start), end; at < s->top; at = end) {
			const bool is_free = heap_marks_is_free(&s->marks, at);
			end = heap_segment_chunk_end(s, at);
			if (!is_free)
				(pass ? count_size : count_live)(c, at, end);
			else if (!pass && glibc_heap_is_gap(c->heap, at))
				count_live(c, at, end);
		}
		if (!pass)
			count_pages(c);
	}
	c->figures->top += resident_pages_sum(pages, page_ceiling(s->top), s->end);
}

int heap_figures_add(struct heap_figures *f, const struct glibc_heap *h, const struct resident_pages *pages,
                     struct err *e)
{
	for (size_t i = 0; i < h->segment_count; i++) {
		const struct heap_segment *s = &h->segments[i];
		struct counting c = { .figures = f, .heap = h, .segment = s, .first = s->start / CENSUS_PAGE };
		c.page_count = (size_t)(page_ceiling(s->end) / CENSUS_PAGE - c.first);
		c.live = calloc(c.page_count, sizeof *c.live);
		if (!c.live)
			return err_set(e, ENOMEM, "no memory for the pages of its heap");
		count_segment(&c, pages);
		free(c.live);
	}
	return 0;
}

void heap_figures_add_block(struct heap_figures *f, uint64_t bytes, uint64_t resident)
{
	struct size_figures *size = &f->sizes[heap_size_class(bytes)];

	size->blocks++;
	size->bytes += bytes;
	f->live_blocks++;
	f->live_bytes += bytes;
	f->live += resident;
	f->resident += resident;
}
