/* SPDX-License-Identifier: MIT */
#include "census/block_types.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "census/type_names.h"

#define WINDOW_BYTES (1u << 20)
#define LOOK_BYTES 256u /* of a block */
#define LEAST_TEXT 6u   /* characters */
#define LEAST_POINTERS 4u
#define TYPES_MAX 50000u
#define NONE_WORDS 16384u /* that led to no type are remembered */
#define PREFIX 1u         /* of a name: its source */

struct looking {
	struct block_types *types;
	const struct census_heap *heap;
	struct census_memory *memory;
	bool python;
	block_wanted_fn wanted;
	const void *context;
	uint64_t none[NONE_WORDS];
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
	return t->names.list[i] + PREFIX;
}

/* The number of a type; its figures are zeros if it is new. */
static int number_of(struct block_types *t, enum type_source source, const char *name, uint32_t *number, struct err *e)
{
	const uint32_t before = t->names.count;
	char text[TYPE_NAME + PREFIX + 1];

	snprintf(text, sizeof text, "%c%s", '0' + (int)source, name);
	if (before >= TYPES_MAX && !string_table_find(&t->names, text, number)) {
		t->full = true;
		*number = 0;
		return 0;
	}
	if (string_table_add(&t->names, text, number))
		return err_set(e, ENOMEM, "no memory for the types of its blocks");
	if (*number < before)
		return 0;
	if (!grow_list(t->list, before))
		return err_set(e, ENOMEM, "no memory for the types of its blocks");
	t->list[before] = (struct type_figures){ .source = source };
	return 0;
}

typedef bool (*type_of_fn)(struct census_memory *memory, uint64_t word, char name[TYPE_NAME]);

/* By a word that leads to a type, which is looked up once. *number: 0 if it leads to none. */
static int by_word(struct looking *l, uint64_t word, type_of_fn type_of, enum type_source source, uint32_t *number,
                   struct err *e)
{
	struct block_types *t = l->types;
	const uint64_t key = word | (source == TYPE_PYTHON); /* types are aligned */
	const uint32_t *known = map_find(&t->by_word, key);
	uint64_t *none = &l->none[map_mix(key) % NONE_WORDS];
	char name[TYPE_NAME];

	*number = known ? *known : 0;
	if (known || *none == key)
		return 0;
	if (t->by_word.count >= TYPES_MAX || !type_of(l->memory, word, name)) {
		*none = key;
		return 0;
	}
	int rc = number_of(t, source, name, number, e);
	if (rc == 0 && map_put(&t->by_word, key, *number))
		rc = err_set(e, ENOMEM, "no memory for the types of its blocks");
	return rc;
}

/* An object, or one behind the header of the collector, or behind that and the words for its dict. */
static int by_python(struct looking *l, const uint64_t *words, size_t count, uint32_t *number, struct err *e)
{
	int rc = 0;

	for (size_t k = 1; k <= 5 && k < count && !*number && rc == 0; k += 2)
		if (type_name_may_follow(words[k - 1]) && words[k] % 8 == 0 && words[k] >> 47 == 0 &&
		    words[k] >= CENSUS_PAGE)
			rc = by_word(l, words[k], type_name_of_python, TYPE_PYTHON, number, e);
	return rc;
}

static bool is_text(const uint8_t *data, size_t bytes)
{
	size_t n = 0;

	while (n < bytes && (isprint(data[n]) || isspace(data[n])))
		n++;
	return n >= LEAST_TEXT && (n == bytes || !data[n]);
}

static bool is_pointers(const struct looking *l, const uint64_t *words, size_t count)
{
	size_t pointers = 0, zeros = 0;

	for (size_t i = 0; i < count; i++) {
		zeros += !words[i];
		pointers += words[i] >> 16 && glibc_heap_segment(&l->heap->glibc, words[i]);
	}
	return pointers >= LEAST_POINTERS && (pointers + zeros) * 10 >= count * 9;
}

static bool is_zeros(const uint8_t *data, size_t bytes)
{
	return bytes && !data[0] && !memcmp(data, data + 1, bytes - 1);
}

/* The first bytes of a block of so many bytes. */
static int add_block(struct looking *l, const uint8_t *data, size_t have, uint64_t bytes, struct err *e)
{
	uint64_t words[LOOK_BYTES / 8];
	uint32_t number = 0;
	int rc = 0;

	have = have < LOOK_BYTES ? have : LOOK_BYTES;
	memcpy(words, data, have / 8 * 8);
	if (l->python)
		rc = by_python(l, words, have / 8, &number, e);
	if (rc == 0 && !number && have >= 8 && type_name_may_be_vtable(l->memory, words[0]))
		rc = by_word(l, words[0], type_name_of_vtable, TYPE_VTABLE, &number, e);
	if (rc == 0 && !number) {
		const char *content = is_zeros(data, have)              ? "zeros"
		                      : is_text(data, have)             ? "text"
		                      : is_pointers(l, words, have / 8) ? "pointers"
		                                                        : NULL;
		rc = content ? number_of(l->types, TYPE_CONTENT, content, &number, e) : 0;
	}
	if (rc < 0)
		return rc;
	l->types->list[number].blocks++;
	l->types->list[number].bytes += bytes;
	l->types->bytes += bytes;
	return 0;
}

/* Bytes that follow an address, at most LOOK_BYTES of them; *have: how many are in the window. */
static const uint8_t *look_at(struct looking *l, uint64_t at, uint64_t limit, size_t *have)
{
	const uint64_t want = at + LOOK_BYTES < limit ? at + LOOK_BYTES : limit;

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

static int look_at_extent(struct looking *l, const struct extent *x, struct err *e)
{
	const uint64_t size = l->heap->pools.pool_bytes;
	uint8_t first[16 + LOOK_BYTES];
	int rc = 0;

	if (x->kind == REGION_MAPPED) /* one block each: a window would be read for nothing */
		return is_wanted(l, x->start + 16) && census_memory_read(l->memory, x->start, first, sizeof first)
		               ? add_block(l, first + 16, sizeof first - 16, x->end - x->start - 16, e)
		               : 0;
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
	uint32_t first;

	*t = (struct block_types){ 0 };
	if (!l || !window)
		return err_set(e, ENOMEM, "no memory for a part of its heap");
	l->types = t;
	l->heap = h;
	l->memory = memory;
	l->wanted = wanted;
	l->context = context;
	l->python = h->pools.pools > 0;
	l->window = window;
	census_memory_refresh(memory);
	int rc = number_of(t, TYPE_UNNAMED, "not named", &first, e);
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
