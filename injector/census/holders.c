/* SPDX-License-Identifier: MIT */
#include "census/holders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/size.h"
#include "base/sorted.h"
#include "census/data_symbols.h"
#include "census/type_names.h"

#define LOOK_WORDS 4u /* of a block: a pointer to a variable says what it is */
#define HOLDERS_MAX 20000u
#define PATH_BLOCKS_MAX 100000u
#define SMALL_BLOCK 4096u
#define WORD_BYTES 8u
#define ARRAY_LEAST 16u

struct summing {
	struct holders *holders;
	const struct reach *reach;
	const struct stack_owners *stacks;
	struct data_symbols symbols;
	uint64_t *below; /* by index: bytes of a block and of what was reached through it */
	uint32_t *held;  /* by index: the number of the holder */
};

static uint64_t bytes_of(const struct reach *r, uint32_t index)
{
	const struct block b = block_space_block(&r->blocks, r->queue[index]);

	return b.end - b.start;
}

/* Children come after their parents. */
static void add_up(struct summing *s)
{
	const struct reach *r = s->reach;
	uint32_t parent;

	for (size_t i = r->queued; i-- > 0;) {
		s->below[i] += bytes_of(r, (uint32_t)i);
		if (reach_paths_parent(&r->paths, (uint32_t)i, &parent))
			s->below[parent] += s->below[i];
	}
}

static const char *kind_of(const struct reach *r, uint64_t address, const struct mapping *m)
{
	const struct extents *x = &r->heap->extents;
	const size_t i = extents_from(x, address);
	struct region region;

	if (i < x->count && x->list[i].start <= address)
		return x->list[i].kind == REGION_RUNTIME ? x->list[i].name : region_kind_title(x->list[i].kind);
	return m && region_of_mapping(&region, m) ? region_kind_title(region.kind) : "other memory";
}

static void describe(const struct summing *s, uint64_t address, char text[DATA_SYMBOL_NAME])
{
	const struct mapping *m = maps_find(s->reach->maps, address);
	const char *thread = m ? stack_owners_name(s->stacks, (size_t)(m - s->reach->maps->list)) : NULL;
	const char *slash = m ? strrchr(m->path, '/') : NULL;

	if (data_symbols_describe(&s->symbols, address, text))
		return;
	if (thread)
		snprintf(text, DATA_SYMBOL_NAME, "stacks of threads '%s'", thread);
	else if (m && m->shared && slash)
		snprintf(text, DATA_SYMBOL_NAME, "%s %.80s", kind_of(s->reach, address, m), slash + 1);
	else
		snprintf(text, DATA_SYMBOL_NAME, "%s", kind_of(s->reach, address, m));
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

/* Where no variable is known: many words that follow each other are an array. */
static uint64_t end_of_array(const struct reach_paths *p, size_t from)
{
	size_t i = from;

	while (i + 1 < p->root_count && p->roots[i + 1].address - p->roots[i].address == WORD_BYTES)
		i++;
	return i - from >= ARRAY_LEAST ? p->roots[i].address + WORD_BYTES : p->roots[from].address + WORD_BYTES;
}

static int add_roots(struct summing *s, struct err *e)
{
	const struct reach_paths *p = &s->reach->paths;
	char name[DATA_SYMBOL_NAME];
	uint64_t start = 0, end = 0;
	uint32_t number = 0;
	int rc = 0;

	for (size_t i = 0; i < p->root_count && rc == 0; i++) {
		const struct reach_root *root = &p->roots[i];
		const bool same = root->address >= start && root->address < end;
		if (!same) {
			describe(s, root->address, name);
			rc = holder_of(s->holders, name, &number, e);
			const struct data_symbol *variable = data_symbols_find(&s->symbols, root->address);
			start = root->address;
			end = variable ? variable->end : end_of_array(p, i);
		}
		s->held[root->index] = number;
		struct holder *h = &s->holders->list[number];
		if (rc == 0 && s->below[root->index] > h->heaviest_bytes) {
			h->heaviest_bytes = s->below[root->index];
			h->heaviest = root->index;
		}
	}
	return rc;
}

static void add_blocks(struct summing *s)
{
	const struct reach *r = s->reach;
	uint32_t parent;

	for (size_t i = 0; i < r->queued; i++) {
		if (reach_paths_parent(&r->paths, (uint32_t)i, &parent))
			s->held[i] = s->held[parent];
		struct holder *h = &s->holders->list[s->held[i]];
		const uint64_t bytes = bytes_of(r, (uint32_t)i);
		h->blocks++;
		h->bytes += bytes;
		s->holders->bytes += bytes;
	}
}

/* What a block is, as far as its first words tell. */
static void describe_block(const struct summing *s, uint32_t index, char text[128])
{
	const struct reach *r = s->reach;
	const struct block b = block_space_block(&r->blocks, r->queue[index]);
	const uint64_t bytes = b.end - b.start;
	char name[DATA_SYMBOL_NAME], size[SIZE_TEXT];
	uint64_t words[LOOK_WORDS] = { 0 };
	const size_t have = bytes < sizeof words ? bytes / 8 * 8 : sizeof words;

	if (bytes < SMALL_BLOCK)
		snprintf(text, 128, "%" PRIu64 " bytes", bytes);
	else
		snprintf(text, 128, "%s", size_format((double)bytes, size));
	if (!census_read(r->memory, b.start, words, have))
		return;
	if (type_of_vtable(r->memory, words[0], name) ||
	    (r->heap->pools.pools && type_may_count(words[0]) && type_of_python(r->memory, words[1], name))) {
		snprintf(text, 128, "%.100s", name);
		return;
	}
	for (unsigned i = 0; i < LOOK_WORDS; i++) {
		const struct data_symbol *symbol = data_symbols_find(&s->symbols, words[i]);
		if (symbol && symbol->address == words[i]) {
			snprintf(text, 128, "block with &%.80s", data_symbol_name(&s->symbols, symbol, name));
			return;
		}
	}
}

static uint64_t count_below(const struct summing *s, uint32_t index)
{
	uint32_t first = index, end = index + 1;
	uint64_t count = 0;

	for (unsigned level = 0; level < PATH_BLOCKS_MAX && first < end; level++) {
		reach_paths_children(&s->reach->paths, s->reach->queued, &first, &end);
		count += end - first;
	}
	return count;
}

/* The child through which so much was reached. */
static bool heaviest_child(const struct summing *s, uint32_t index, uint64_t least, uint32_t *child)
{
	uint32_t first = index, end = index + 1;

	reach_paths_children(&s->reach->paths, s->reach->queued, &first, &end);
	for (uint32_t i = first; i < end; i++)
		if (s->below[i] > least) {
			*child = i;
			return true;
		}
	return false;
}

/* From its heaviest block on, as long as one block leads to most of it; those that are alike are one step. */
static void find_path(const struct summing *s, struct holder *h)
{
	uint32_t at = h->heaviest, last = at;
	bool more = h->heaviest_bytes > h->bytes / 2;

	h->below = h->blocks;
	for (unsigned n = 0; more && n < PATH_BLOCKS_MAX; n++) {
		struct holder_step step = { .blocks = 1 };
		describe_block(s, at, step.what);
		if (h->step_count && !strcmp(h->steps[h->step_count - 1].what, step.what))
			h->steps[h->step_count - 1].blocks++;
		else if (h->step_count < HOLDER_STEPS)
			h->steps[h->step_count++] = step;
		else
			break;
		last = at;
		more = heaviest_child(s, at, h->bytes / 2, &at);
	}
	if (h->step_count)
		h->below = count_below(s, last);
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

int holders_take(struct holders *h, const struct reach *r, const struct stack_owners *stacks,
                 const struct target_memory *process, uint32_t shown, struct err *e)
{
	AUTO_FREE uint64_t *below = calloc(r->queued + 1, sizeof *below);
	AUTO_FREE uint32_t *held = calloc(r->queued + 1, sizeof *held);
	struct summing s = { .holders = h, .reach = r, .stacks = stacks, .below = below, .held = held };

	*h = (struct holders){ 0 };
	if (!below || !held)
		return err_set(e, ENOMEM, "no memory for who holds its blocks");
	data_symbols_read(&s.symbols, process, r->maps);
	add_up(&s);
	int rc = add_roots(&s, e);
	if (rc == 0)
		add_blocks(&s);
	if (rc == 0)
		rc = order_all(h, e);
	for (uint32_t i = 0; i < shown && i < h->names.count && rc == 0; i++)
		find_path(&s, &h->list[h->order[i]]);
	data_symbols_free(&s.symbols);
	h->known = rc == 0;
	return rc;
}

void holders_free(struct holders *h)
{
	string_table_done(&h->names);
	free(h->list);
	free(h->order);
	*h = (struct holders){ 0 };
}
