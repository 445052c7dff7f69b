/* SPDX-License-Identifier: MIT */
#include "census/blocks/block_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "census/blocks/type_finder.h"

#define WINDOW_BYTES (1u << 20)
#define CHUNK_HEADER 16u
#define CHUNK_LEAST 32u

struct looking {
	struct block_types *types;
	const struct census_heap *heap;
	struct census_memory *memory;
	struct type_finder finder;
	block_wanted_fn wanted;
	const void *context;
	uint8_t *window;
	uint64_t window_start, window_end;
};

const char *type_source_name(enum type_source source)
{
	static const char *const names[] = { "", "vtable", "python", "content" };

	return names[source];
}

const char *block_types_name(const struct block_types *t, size_t i)
{
	return t->names.list[i] + TYPE_PREFIX;
}

/* The first bytes of a block of so many bytes. */
static int add_block(struct looking *l, const uint8_t *data, size_t have, uint64_t bytes, struct err *e)
{
	uint32_t number;

	int rc = type_finder_find(&l->finder, data, have, &number, e);
	if (rc < 0)
		return rc;
	l->types->list[number].blocks++;
	l->types->list[number].bytes += bytes;
	l->types->bytes += bytes;
	return 0;
}

/* Bytes that follow an address, at most TYPE_LOOK_BYTES of them; *have: how many are in the window. */
static const uint8_t *look_at(struct looking *l, uint64_t at, uint64_t limit, size_t *have)
{
	const uint64_t want = at + TYPE_LOOK_BYTES < limit ? at + TYPE_LOOK_BYTES : limit;

	if (at < l->window_start || want > l->window_end) {
		l->window_start = at - at % CENSUS_PAGE;
		l->window_end = l->window_start + WINDOW_BYTES;
		if (!census_memory_read_range(l->memory, l->window_start, l->window, WINDOW_BYTES)) {
			l->types->over = true;
			l->window_start = l->window_end = 0;
			return NULL;
		}
	}
	*have = want - at;
	return l->window + (at - l->window_start);
}

static int add_at(struct looking *l, uint64_t block, uint64_t end, struct err *e)
{
	size_t have;
	const uint8_t *data = look_at(l, block, end, &have);

	return data ? add_block(l, data, have, end - block, e) : 0;
}

static bool is_wanted(const struct looking *l, uint64_t block)
{
	return !l->wanted || l->wanted(l->context, block);
}

/* A block begins behind the size of its chunk, and uses the first word of the next one. */
static int look_at_segment(struct looking *l, const struct heap_segment *s, struct err *e)
{
	int rc = 0;

	for (uint64_t at = heap_marks_next(&s->marks, s->start), end; at < s->top && rc == 0 && !l->types->over;
	     at = end) {
		end = heap_segment_chunk_end(s, at);
		if (!heap_marks_is_free(&s->marks, at) && is_wanted(l, at + 16))
			rc = add_at(l, at + 16, end + 8 < s->end ? end + 8 : s->end, e);
	}
	return rc;
}

static int look_at_pool(struct looking *l, uint64_t at, uint64_t size, struct err *e)
{
	uint8_t *is_free = l->window + WINDOW_BYTES; /* of each block */
	struct pool pool;
	uint64_t words[6];
	size_t have;
	int rc = 0;

	const uint8_t *data = look_at(l, at, at + size, &have);
	if (!data || at + size > l->window_end)
		return 0;
	memcpy(words, data, sizeof words);
	if (pool_read(&pool, at, words) != size)
		return 0;
	const size_t count = (pool.carved - POOL_HEADER) / pool.block_bytes;
	memset(is_free, 0, count);
	for (uint64_t next = pool.first_free, n = 0; next && n <= count; n++) {
		const uint64_t offset = next - at;
		if (offset < POOL_HEADER || offset >= pool.carved || (offset - POOL_HEADER) % pool.block_bytes)
			break;
		is_free[(offset - POOL_HEADER) / pool.block_bytes] = 1;
		memcpy(&next, data + offset, sizeof next);
	}
	for (size_t i = 0; i < count && rc == 0; i++)
		if (!is_free[i])
			rc = add_block(l, data + POOL_HEADER + i * pool.block_bytes, pool.block_bytes, pool.block_bytes,
			               e);
	return rc;
}

/*
 * Where the block of a mapping begins: behind its header, or, if memalign() has made it, behind another one that says
 * how far from the first it is (malloc/malloc.c, _int_memalign). Between them nothing was written.
 */
static uint64_t mapped_block(struct looking *l, const struct extent *x)
{
	const uint64_t first = x->start + CHUNK_HEADER, bytes = x->end - x->start;
	uint64_t header[2];

	if (census_memory_word(l->memory, first) || census_memory_word(l->memory, first + 8))
		return first;
	for (uint64_t alignment = 2 * CHUNK_LEAST; alignment < bytes; alignment *= 2) {
		uint64_t block = (first + alignment - 1) / alignment * alignment;
		block += block - first < CHUNK_LEAST ? alignment : 0;
		const uint64_t lead = block - first;
		if (lead + CHUNK_HEADER < bytes &&
		    census_memory_read(l->memory, block - CHUNK_HEADER, header, sizeof header) &&
		    header[0] - lead <= 1 && x->end - block - (header[1] & ~7ull) + CHUNK_HEADER <= CHUNK_HEADER)
			return block;
	}
	return first;
}

static int look_at_mapped(struct looking *l, const struct extent *x, struct err *e)
{
	uint8_t first[TYPE_LOOK_BYTES];
	const uint64_t block = mapped_block(l, x);
	const size_t have = x->end - block < sizeof first ? x->end - block : sizeof first;

	if (!is_wanted(l, x->start + CHUNK_HEADER) || !census_memory_read(l->memory, block, first, have))
		return 0;
	return add_block(l, first, have, x->end - block, e);
}

static int look_at_extent(struct looking *l, const struct extent *x, struct err *e)
{
	const uint64_t size = l->heap->pools.pool_bytes;
	int rc = 0;

	if (x->kind == REGION_MAPPED) /* one block each: a window would be read for nothing */
		return look_at_mapped(l, x, e);
	for (uint64_t at = x->start;
	     x->kind == REGION_PYTHON && !l->wanted && at + size <= x->end && rc == 0 && !l->types->over; at += size) {
		if (at + size > l->window_end) /* whole pools */
			l->window_start = l->window_end = 0;
		rc = look_at_pool(l, at, size, e);
	}
	return rc;
}

int block_types_take(struct block_types *t, const struct census_heap *h, struct census_memory *memory,
                     block_wanted_fn wanted, const void *context, struct err *e)
{
	AUTO_FREE struct looking *l = calloc(1, sizeof *l);
	AUTO_FREE uint8_t *window = malloc(WINDOW_BYTES + CENSUS_PAGE);

	*t = (struct block_types){ 0 };
	if (!l || !window)
		return err_set(e, ENOMEM, "no memory for a part of its heap");
	l->types = t;
	l->heap = h;
	l->memory = memory;
	l->wanted = wanted;
	l->context = context;
	l->window = window;
	census_memory_refresh(memory);
	int rc = type_finder_open(&l->finder, t, h, memory, e);
	for (size_t i = 0; i < h->glibc.segment_count && rc == 0; i++)
		rc = look_at_segment(l, &h->glibc.segments[i], e);
	for (size_t i = 0; i < h->extents.count && rc == 0; i++)
		rc = look_at_extent(l, &h->extents.list[i], e);
	return rc;
}

void block_types_free(struct block_types *t)
{
	string_table_done(&t->names);
	map_done(&t->by_word);
	free(t->list);
	*t = (struct block_types){ 0 };
}
