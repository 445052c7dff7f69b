/* SPDX-License-Identifier: MIT */
#include "census/blocks/root_names.h"

#include <stdio.h>
#include <string.h>

#include "census/heap/python_pools.h"
#include "census/reach/reach_roots.h"

#define WORD_BYTES 8u
#define ARRAY_LEAST 16u
#define HEAD_WORDS 6u /* of an object of CPython, with what is in front of it */

void root_names_open(struct root_names *n, const struct reach *r, const struct stack_owners *stacks,
                     const struct target_memory *process)
{
	*n = (struct root_names){ .reach = r, .stacks = stacks };
	data_symbols_read(&n->symbols, process, r->maps);
}

void root_names_close(struct root_names *n)
{
	data_symbols_free(&n->symbols);
}

static const struct extent *extent_at(const struct reach *r, uint64_t address)
{
	const struct extents *x = &r->heap->extents;
	const size_t i = extents_from(x, address);

	return i < x->count && x->list[i].start <= address ? &x->list[i] : NULL;
}

static const char *kind_of(const struct reach *r, uint64_t address, const struct mapping *m)
{
	const struct extent *x = extent_at(r, address);
	struct region region;

	if (x)
		return x->kind == REGION_RUNTIME ? x->name : region_kind_title(x->kind);
	return m && region_of_mapping(&region, m) ? region_kind_title(region.kind) : "other memory";
}

bool root_names_of_object(const struct root_names *n, const uint64_t *words, size_t count, char name[TYPE_NAME])
{
	struct census_memory *memory = n->reach->memory;

	if (count && type_name_of_vtable(memory, words[0], name))
		return true;
	/* An object, or one behind the header of the collector, or behind that and the words for its dict. */
	for (size_t k = 1; k < HEAD_WORDS && k < count && n->reach->heap->pools.pools; k += 2)
		if (type_name_may_follow(words[k - 1]) && type_name_of_python(memory, words[k], name))
			return true;
	return false;
}

/* The small object of CPython that an address is in. */
static bool name_python(const struct root_names *n, uint64_t address, struct root_name *name)
{
	const struct extent *x = extent_at(n->reach, address);
	const uint64_t size = n->reach->heap->pools.pool_bytes;
	uint64_t words[HEAD_WORDS] = { 0 };
	char type[TYPE_NAME];
	struct pool pool;

	if (!x || x->kind != REGION_PYTHON || !size)
		return false;
	const uint64_t at = x->start + (address - x->start) / size * size;
	if (!census_memory_read(n->reach->memory, at, words, sizeof words) || pool_read(&pool, at, words) != size ||
	    address < at + POOL_HEADER)
		return false;
	const uint64_t start = address - (address - at - POOL_HEADER) % pool.block_bytes;
	const size_t bytes = pool.block_bytes < sizeof words ? pool.block_bytes : sizeof words;
	if (!census_memory_read(n->reach->memory, start, words, bytes) ||
	    !root_names_of_object(n, words, bytes / WORD_BYTES, type))
		return false;
	snprintf(name->text, sizeof name->text, "Python %.100s", type);
	name->end = start + pool.block_bytes;
	return true;
}

/* Where no variable is known: many words that follow each other are an array. */
static uint64_t end_of_array(const struct reach *r, size_t from)
{
	size_t i = from;

	while (i + 1 < r->root_count && r->roots[i + 1] - r->roots[i] == WORD_BYTES)
		i++;
	return i - from >= ARRAY_LEAST ? r->roots[i] + WORD_BYTES : r->roots[from] + WORD_BYTES;
}

static void name_place(const struct root_names *n, uint64_t address, char text[DATA_SYMBOL_NAME])
{
	const struct mapping *m = maps_find(n->reach->maps, address);
	const char *thread = m ? stack_owners_name(n->stacks, m) : NULL;
	const char *slash = m ? strrchr(m->path, '/') : NULL;

	if (address == REACH_OF_REGISTERS || address == REACH_OF_NEW)
		snprintf(text, DATA_SYMBOL_NAME, "%s", address == REACH_OF_NEW ? "newer blocks" : "registers");
	else if (thread)
		snprintf(text, DATA_SYMBOL_NAME, "stacks of threads '%s'", thread);
	else if (m && !strcmp(m->path, "[stack]"))
		snprintf(text, DATA_SYMBOL_NAME, "stack of the first thread");
	else if (m && m->shared && slash)
		snprintf(text, DATA_SYMBOL_NAME, "%s %.80s", kind_of(n->reach, address, m), slash + 1);
	else if (m && reach_root_may_be_stack(n->reach->maps, m) && !extent_at(n->reach, address))
		snprintf(text, DATA_SYMBOL_NAME, "stack of a thread");
	else
		snprintf(text, DATA_SYMBOL_NAME, "%s", kind_of(n->reach, address, m));
}

void root_names_find(const struct root_names *n, size_t root, struct root_name *name)
{
	const uint64_t address = n->reach->roots[root];
	const struct data_symbol *variable = data_symbols_find(&n->symbols, address);

	name->is_typed = name_python(n, address, name);
	if (name->is_typed)
		return;
	name->is_typed = variable != NULL;
	name->end = variable ? variable->end : end_of_array(n->reach, root);
	if (!data_symbols_describe(&n->symbols, address, name->text))
		name_place(n, address, name->text);
}
