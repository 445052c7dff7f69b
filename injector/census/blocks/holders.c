/* SPDX-License-Identifier: MIT */
#include "census/blocks/holders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/size.h"
#include "census/blocks/root_names.h"

#define LOOK_WORDS 4u /* of a block: a pointer to a variable says what it is */
#define HOLDERS_MAX 20000u
#define PATH_BLOCKS_MAX 100000u
#define SMALL_BLOCK 4096u
#define UNIT_BYTES 8u /* of which 2^32 are the most that is told apart */

struct summing {
	struct holders *holders;
	const struct reach *reach;
	struct root_names names;
	/*
	 * Most blocks lead to no other: only of those that do more is kept. A bit by index says which they are, and
	 * ranks how many come before each 64 of them, which gives each a place.
	 */
	uint64_t *inner;
	uint32_t *ranks;
	uint32_t inner_count;
	uint32_t *below; /* by place: units of a block and of what was reached through it */
	uint32_t *tags; /* by place: first the holder, then the child through which most was reached, then which path */
};

static struct block block_of(const struct reach *r, size_t index)
{
	return block_space_block(&r->blocks, r->queue[index].number);
}

static bool is_root(const struct reach *r, size_t index)
{
	return r->queue[index].parent & REACHED_BY_ROOT;
}

static uint32_t plus(uint32_t a, uint64_t b)
{
	return b < UINT32_MAX - a ? a + (uint32_t)b : UINT32_MAX;
}

static bool is_inner(const struct summing *s, size_t index)
{
	return s->inner[index / 64] >> index % 64 & 1;
}

static uint32_t place_of(const struct summing *s, size_t index)
{
	const uint64_t before = s->inner[index / 64] & ((1ull << index % 64) - 1);

	return s->ranks[index / 64] + (uint32_t)__builtin_popcountll(before);
}

static uint32_t below_of(const struct summing *s, size_t index)
{
	const struct block b = block_of(s->reach, index);

	return is_inner(s, index) ? s->below[place_of(s, index)] : plus(0, (b.end - b.start) / UNIT_BYTES);
}

static int find_inner(struct summing *s, struct err *e)
{
	const struct reach *r = s->reach;
	const size_t words = r->queued / 64 + 1;

	s->inner = calloc(words, sizeof *s->inner);
	s->ranks = calloc(words, sizeof *s->ranks);
	if (!s->inner || !s->ranks)
		return err_set(e, ENOMEM, "no memory for who holds its blocks");
	for (size_t i = 0; i < r->queued; i++)
		if (!is_root(r, i))
			s->inner[r->queue[i].parent / 64] |= 1ull << r->queue[i].parent % 64;
	for (size_t i = 0; i < words; i++) {
		s->ranks[i] = s->inner_count;
		s->inner_count += (uint32_t)__builtin_popcountll(s->inner[i]);
	}
	s->below = calloc(s->inner_count + 1ull, sizeof *s->below);
	s->tags = calloc(s->inner_count + 1ull, sizeof *s->tags);
	return s->below && s->tags ? 0 : err_set(e, ENOMEM, "no memory for who holds its blocks");
}

/* Children come after their parents. */
static void add_up(struct summing *s)
{
	const struct reach *r = s->reach;

	for (size_t i = r->queued; i-- > 0;) {
		const struct block b = block_of(r, i);
		uint32_t units = plus(0, (b.end - b.start) / UNIT_BYTES);
		if (is_inner(s, i)) {
			const uint32_t place = place_of(s, i);
			units = s->below[place] = plus(s->below[place], units);
		}
		if (!is_root(r, i)) {
			const uint32_t above = place_of(s, r->queue[i].parent);
			s->below[above] = plus(s->below[above], units);
		}
	}
}

/* The holder of this name, which is new or not; all that is beyond what is told apart is one. */
static int holder_of(struct holders *h, const char *name, uint32_t *number, struct err *e)
{
	const uint32_t before = h->names.count;

	if (before >= HOLDERS_MAX && !string_table_find(&h->names, name, number))
		name = "others";
	if (string_table_add(&h->names, name, number) || (*number == before && !grow_list(h->list, before)))
		return err_set(e, ENOMEM, "no memory for who holds its blocks");
	if (*number == before)
		h->list[before] = (struct holder){ 0 };
	return 0;
}

/* The holder of each root, by the number of its address. */
static int name_roots(struct summing *s, uint32_t *holder_of_root, struct err *e)
{
	const struct reach *r = s->reach;
	struct root_name name;
	uint64_t start = 0, end = 0;
	uint32_t number = 0;
	int rc = 0;

	for (size_t i = 0; i < r->root_count && rc == 0; i++) {
		const uint64_t address = r->roots[i];
		if (address < start || address >= end) {
			root_names_find(&s->names, i, &name);
			rc = holder_of(s->holders, name.text, &number, e);
			start = address;
			end = name.end;
		}
		holder_of_root[i] = number;
	}
	return rc;
}

/* What each of them holds. */
static void add_blocks(struct summing *s, const uint32_t *holder_of_root)
{
	const struct reach *r = s->reach;

	for (size_t i = 0; i < r->queued; i++) {
		const uint32_t parent = r->queue[i].parent;
		const struct block b = block_of(r, i);
		const uint32_t holder = is_root(r, i) ? holder_of_root[parent & ~REACHED_BY_ROOT]
		                                      : s->tags[place_of(s, parent)];
		struct holder *h = &s->holders->list[holder];
		if (is_inner(s, i))
			s->tags[place_of(s, i)] = holder;
		h->blocks += b.end > b.start;
		h->bytes += b.end - b.start;
		s->holders->bytes += b.end - b.start;
		if (is_root(r, i) && below_of(s, i) >= h->heaviest_units) {
			h->heaviest_units = below_of(s, i);
			h->heaviest = (uint32_t)i;
		}
	}
}

static int add_roots(struct summing *s, struct err *e)
{
	AUTO_FREE uint32_t *holder_of_root = calloc(s->reach->root_count + 1, sizeof *holder_of_root);

	if (!holder_of_root)
		return err_set(e, ENOMEM, "no memory for who holds its blocks");
	int rc = name_roots(s, holder_of_root, e);
	if (rc == 0)
		add_blocks(s, holder_of_root);
	return rc;
}

/* 0 stands for none: the first block is nobody's child. */
static void find_heaviest_children(struct summing *s)
{
	const struct reach *r = s->reach;

	memset(s->tags, 0, s->inner_count * sizeof *s->tags);
	for (size_t i = 0; i < r->queued; i++) {
		if (is_root(r, i))
			continue;
		uint32_t *child = &s->tags[place_of(s, r->queue[i].parent)];
		if (!*child || below_of(s, i) > below_of(s, *child))
			*child = (uint32_t)i;
	}
}

/* What a block is, as far as its first words tell. */
static void describe_block(const struct summing *s, uint32_t index, char text[128])
{
	const struct reach *r = s->reach;
	const struct block b = block_of(r, index);
	const uint64_t bytes = b.end - b.start;
	char name[DATA_SYMBOL_NAME], size[SIZE_TEXT];
	uint64_t words[LOOK_WORDS] = { 0 };
	const size_t have = bytes < sizeof words ? bytes / 8 * 8 : sizeof words;

	if (bytes < SMALL_BLOCK)
		snprintf(text, 128, "%" PRIu64 " bytes", bytes);
	else
		snprintf(text, 128, "%s", size_format((double)bytes, size));
	if (!census_memory_read(r->memory, b.start, words, have))
		return;
	if (root_names_of_object(&s->names, words, have / 8, name)) {
		snprintf(text, 128, "%.100s", name);
		return;
	}
	for (unsigned i = 0; i < LOOK_WORDS; i++) {
		const struct data_symbol *symbol = data_symbols_find(&s->names.symbols, words[i]);
		if (symbol && symbol->address == words[i]) {
			snprintf(text, 128, "block with &%.80s", data_symbol_name(&s->names.symbols, symbol, name));
			return;
		}
	}
}

/* From its heaviest block on, as long as one block leads to most of it; those that are alike are one step. */
static void find_path(const struct summing *s, struct holder *h)
{
	const uint64_t most = h->bytes / UNIT_BYTES / 2;
	uint32_t at = h->heaviest;

	for (unsigned n = 0; below_of(s, at) > most && n < PATH_BLOCKS_MAX; n++) {
		struct holder_step step = { .blocks = 1 };
		describe_block(s, at, step.what);
		if (h->step_count && !strcmp(h->steps[h->step_count - 1].what, step.what))
			h->steps[h->step_count - 1].blocks++;
		else if (h->step_count < HOLDER_STEPS)
			h->steps[h->step_count++] = step;
		else
			break;
		h->last = at;
		if (!is_inner(s, at))
			break;
		at = s->tags[place_of(s, at)];
	}
}

/* How many blocks are behind the last step of each path. */
static void count_below(struct summing *s, uint32_t shown)
{
	const struct reach *r = s->reach;
	struct holders *h = s->holders;

	memset(s->tags, 0, s->inner_count * sizeof *s->tags);
	for (uint32_t i = 0; i < shown && i < h->names.count; i++) {
		const struct holder *row = &h->list[h->order[i]];
		if (row->step_count && is_inner(s, row->last))
			s->tags[place_of(s, row->last)] = i + 1;
	}
	for (size_t i = 0; i < r->queued; i++) {
		const uint32_t above = is_root(r, i) ? 0 : s->tags[place_of(s, r->queue[i].parent)];
		if (!above)
			continue;
		h->list[h->order[above - 1]].below++;
		if (is_inner(s, i))
			s->tags[place_of(s, i)] = above;
	}
}

static const struct holder *sorting;

static int compare(const void *a, const void *b)
{
	const struct holder *x = &sorting[*(const uint32_t *)a], *y = &sorting[*(const uint32_t *)b];

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static int order_all(struct holders *h, struct err *e)
{
	h->order = calloc(h->names.count + 1ull, sizeof *h->order);
	if (!h->order)
		return err_set(e, ENOMEM, "no memory for who holds its blocks");
	for (uint32_t i = 0; i < h->names.count; i++)
		h->order[i] = i;
	sorting = h->list;
	qsort(h->order, h->names.count, sizeof *h->order, compare);
	return 0;
}

static int take(struct summing *s, uint32_t shown, struct err *e)
{
	struct holders *h = s->holders;

	add_up(s);
	int rc = add_roots(s, e);
	rc = rc ?: order_all(h, e);
	if (rc < 0)
		return rc;
	find_heaviest_children(s);
	for (uint32_t i = 0; i < shown && i < h->names.count; i++)
		find_path(s, &h->list[h->order[i]]);
	count_below(s, shown);
	h->known = true;
	return 0;
}

int holders_take(struct holders *h, const struct reach *r, const struct stack_owners *stacks,
                 const struct target_memory *process, uint32_t shown, struct err *e)
{
	struct summing s = { .holders = h, .reach = r };

	*h = (struct holders){ 0 };
	root_names_open(&s.names, r, stacks, process);
	int rc = find_inner(&s, e);
	rc = rc ?: take(&s, shown, e);
	root_names_close(&s.names);
	free(s.inner);
	free(s.ranks);
	free(s.below);
	free(s.tags);
	return rc;
}

void holders_free(struct holders *h)
{
	string_table_done(&h->names);
	free(h->list);
	free(h->order);
	*h = (struct holders){ 0 };
}
