/* SPDX-License-Identifier: MIT */
#include "census/heap/chunk_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "census/heap/tcache.h"
#include "host/clocks.h"

#define WINDOW_BYTES (1u << 20)
#define WINDOW_BYTES_AGAIN (2 * CENSUS_PAGE)
#define CLOCK_EVERY 1024u /* chunks */
#define LEAST_CHUNK 32u
#define PROOF_CHUNKS 8u     /* that follow each other where a walk goes on after a gap */
#define BACK_CHUNKS 256u    /* how far it goes back */
#define FENCE_BYTES 64u     /* of a heap are behind it at most */
#define ATTEMPTS 3u         /* at each */
#define REWIND_BYTES 8192u  /* a short read has less time to change */
#define GAPS_MAX (1u << 20) /* 16 MiB: what is behind them is one more */
#define REWINDS_MAX 10000u  /* in one segment: the process could go on for ever */

/* Flags in the size of a chunk. */
#define PREVIOUS_IN_USE 1u
#define IS_MAPPED 2u
#define NOT_MAIN 4u
#define NO_FLAG 8u

struct walk {
	struct glibc_heap *heap;
	struct heap_segment *segment;
	struct census_memory *memory;
	uint8_t *window;
	uint64_t window_bytes;
	uint64_t window_start, window_end, top;
	unsigned rewinds;
};

static bool read_window(struct walk *w, uint64_t at, uint64_t bytes)
{
	w->window_start = at - at % CENSUS_PAGE;
	w->window_end = w->window_start + bytes;
	if (w->window_end > w->segment->end)
		w->window_end = w->segment->end;
	if (census_memory_read_range(w->memory, w->window_start, w->window, w->window_end - w->window_start))
		return true;
	w->heap->over = true;
	w->window_end = w->window_start;
	return false;
}

/* prev_size and size of a chunk; zeros where they cannot be read. */
static void read_header(struct walk *w, uint64_t chunk, uint64_t header[2])
{
	header[0] = header[1] = 0;
	if ((chunk < w->window_start || chunk + 16 > w->window_end) && !read_window(w, chunk, w->window_bytes))
		return;
	if (chunk + 16 <= w->window_end)
		memcpy(header, w->window + (chunk - w->window_start), 16);
}

/* How long the chunk is; 0: it can be none. */
static uint64_t chunk_at(struct walk *w, uint64_t chunk, bool *is_free)
{
	const uint64_t end = w->segment->end;
	uint64_t header[2], next[2];

	read_header(w, chunk, header);
	const uint64_t size = header[1] & ~15ull;
	if (header[1] & (IS_MAPPED | NO_FLAG) || size < LEAST_CHUNK || size > end - chunk ||
	    (w->segment->main && header[1] & NOT_MAIN))
		return 0;
	*is_free = false;
	if (end - chunk - size < 16)
		return size;
	read_header(w, chunk + size, next);
	*is_free = !(next[1] & PREVIOUS_IN_USE);
	return *is_free && next[0] != size ? 0 : size;
}

static bool chunks_follow(struct walk *w, uint64_t at, unsigned count)
{
	bool is_free;

	for (; count && at < w->segment->end && at != w->top; count--) {
		const uint64_t size = chunk_at(w, at, &is_free);
		if (!size || w->heap->over)
			return false;
		at += size;
	}
	return true;
}

/* Reads again from earlier chunks on, up to the last gap. The place to go on from; 0: there is none. */
static uint64_t rewind_to(struct walk *w, uint64_t at)
{
	uint64_t from = at;

	for (unsigned back = 0; back <= BACK_CHUNKS && from && w->rewinds < REWINDS_MAX; back = back ? 2 * back : 1) {
		for (unsigned i = back ? (back + 1) / 2 : 0; i && from; i--)
			from = heap_marks_previous(&w->segment->marks, from);
		if (glibc_heap_is_gap(w->heap, from))
			return 0;
		for (unsigned i = 0; from && i < ATTEMPTS; i++) {
			w->rewinds++;
			if (!read_window(w, from,
			                 at - from + REWIND_BYTES < WINDOW_BYTES ? at - from + REWIND_BYTES
			                                                         : WINDOW_BYTES))
				return 0;
			if (chunks_follow(w, from, back + 2))
				return from;
		}
	}
	return 0;
}

/* The next place from which chunks follow each other, or the end. */
static uint64_t skip_from(struct walk *w, uint64_t at)
{
	uint64_t there = at + 16;

	while (there < w->segment->end && !w->heap->over) {
		if (there % CENSUS_PAGE == 0)
			there = resident_pages_next(w->memory->pages, there);
		if (there >= w->segment->end)
			break;
		if (there == w->top || chunks_follow(w, there, PROOF_CHUNKS))
			return there;
		there += 16;
	}
	return w->segment->end;
}

static int add_gap(struct walk *w, uint64_t start, uint64_t end, struct err *e)
{
	struct glibc_heap *h = w->heap;

	if (!grow_list(h->gaps, h->gap_count))
		return err_set(e, ENOMEM, "no memory for what of its heap is not known");
	h->gaps[h->gap_count++] = (struct heap_gap){ start, end };
	h->lost_bytes += end - start;
	h->absent_bytes += end - start - resident_pages_sum(w->memory->pages, start, end);
	heap_marks_begin(&w->segment->marks, start, true);
	return 0;
}

static int resync(struct walk *w, uint64_t *from, struct err *e)
{
	const uint64_t at = *from;

	w->heap->resyncs++;
	*from = rewind_to(w, at);
	if (*from) {
		heap_marks_clear(&w->segment->marks, *from, at);
		return 0;
	}
	w->heap->over |= w->heap->gap_count >= GAPS_MAX;
	*from = w->heap->over ? w->segment->end : skip_from(w, at);
	return add_gap(w, at, *from, e);
}

/* It closes an older heap of an arena. In brk's heap what another caller of brk has comes after it. */
static bool is_fencepost(struct walk *w, uint64_t at)
{
	uint64_t header[2];

	read_header(w, at, header);
	return (header[1] & ~15ull) <= 16 && header[1] & PREVIOUS_IN_USE &&
	       (w->segment->main || w->segment->end - at <= FENCE_BYTES);
}

static int note_tcache(struct walk *w, uint64_t chunk, uint64_t size, struct err *e)
{
	struct glibc_heap *h = w->heap;

	if (!tcache_may_be(h, size))
		return 0;
	if (!grow_list(h->tcaches, h->tcache_count))
		return err_set(e, ENOMEM, "no memory for the caches of its threads");
	h->tcaches[h->tcache_count++] = chunk;
	return 0;
}

/* The top moves while blocks are taken from it, or given back to it. */
static bool is_top(struct walk *w, uint64_t at)
{
	census_memory_refresh(w->memory);
	w->top = census_memory_word(w->memory, w->segment->arena + w->heap->glibc.layout->top);
	return at == w->top;
}

static int walk_all(struct walk *w, struct err *e)
{
	struct heap_segment *s = w->segment;
	uint64_t at = s->start;
	int rc = 0;

	while (at + LEAST_CHUNK <= s->end && rc == 0 && (at != w->top || !is_top(w, at))) {
		bool is_free = false;
		uint64_t size = chunk_at(w, at, &is_free);
		if (!size && is_fencepost(w, at)) {
			if (!s->main)
				break;
			at = skip_from(w, at);
			w->heap->foreign |= at < s->end;
			continue;
		}
		if (!size) {
			rc = is_top(w, at) ? 0 : resync(w, &at, e);
			continue;
		}
		if (at + size == s->end) /* the top, which moves */
			break;
		heap_marks_begin(&s->marks, at, is_free);
		if (!is_free)
			rc = note_tcache(w, at, size, e);
		at += size;
	}
	s->top = at;
	return rc;
}

int chunk_walk(struct glibc_heap *h, struct heap_segment *s, struct census_memory *memory, struct err *e)
{
	struct walk w = { .heap = h, .segment = s, .memory = memory, .window_bytes = WINDOW_BYTES };

	w.window = malloc(WINDOW_BYTES);
	if (!w.window)
		return err_set(e, ENOMEM, "no memory for a part of its heap");
	(void)is_top(&w, 0);
	int rc = walk_all(&w, e);
	free(w.window);
	return rc;
}

/* What follows is no chunk that is known: the top, the end of a heap, or what has come to it since. */
static bool is_last(struct walk *w, uint64_t at)
{
	const struct heap_segment *s = w->segment;
	uint64_t header[2];

	if (at == w->top || at + LEAST_CHUNK > s->end || (!s->main && is_fencepost(w, at)))
		return true;
	read_header(w, at, header);
	return (header[1] & ~15ull) >= LEAST_CHUNK && (header[1] & ~15ull) > s->end - at;
}

static int walk_again(struct walk *w, uint64_t at, uint64_t to, chunk_new_fn is_new, void *context, struct err *e)
{
	struct heap_segment *s = w->segment;
	bool is_free;
	int rc = 0;

	for (uint64_t n = 0; (at < to || !heap_marks_begins(&s->marks, at)) && !is_last(w, at) && rc == 0; n++) {
		if (n % CLOCK_EVERY == 0 && clock_monotonic_ns() > w->heap->again_until_ns)
			return err_set(e, ETIME, "it would be stopped for too long");
		const uint64_t size = chunk_at(w, at, &is_free);
		if (!size) {
			w->heap->lost_bytes += to > at ? to - at : CENSUS_PAGE;
			return 0;
		}
		const bool was_used = heap_marks_begins(&s->marks, at) && !heap_marks_is_free(&s->marks, at);
		heap_marks_clear(&s->marks, at, at + size);
		heap_marks_begin(&s->marks, at, is_free);
		if (!is_free && !was_used)
			is_new(context, at);
		rc = is_free ? 0 : note_tcache(w, at, size, e);
		at += size;
	}
	if (is_last(w, at)) {
		heap_marks_clear(&s->marks, at, s->marks.end);
		s->top = at;
	}
	return rc;
}

int chunk_walk_again(struct glibc_heap *h, struct census_memory *memory, struct chunk_range range, chunk_new_fn is_new,
                     void *context, struct err *e)
{
	struct heap_segment *s = range.segment;
	uint8_t window[WINDOW_BYTES_AGAIN];
	struct walk w = {
		.heap = h, .segment = s, .memory = memory, .window = window, .window_bytes = WINDOW_BYTES_AGAIN
	};

	const uint64_t from = range.from > s->start ? range.from : s->start;
	uint64_t at = heap_marks_previous(&s->marks, from);
	const uint64_t to = range.to < s->end ? range.to : s->end;
	if (at && at < from && heap_segment_chunk_end(s, at) >= to && !glibc_heap_is_gap(h, at))
		return 0; /* in a block: no header is there */
	(void)is_top(&w, 0);
	return walk_again(&w, at ? at : s->start, to, is_new, context, e);
}
