/* SPDX-License-Identifier: MIT */
/*
 * What live blocks are: each is read once more, its first words at least, and named by the type that these lead to
 * (type_names.h), else by its content: text, zeros, pointers. Blocks that are none of that are "not named".
 */
#pragma once

#include "base/string_table.h"
#include "census/heap/census_heap.h"

enum type_source {
	TYPE_UNNAMED,
	TYPE_VTABLE,
	TYPE_PYTHON,
	TYPE_CONTENT,
	TYPE_SOURCES,
};

struct type_figures {
	enum type_source source;
	uint64_t blocks, bytes; /* usable ones */
};

struct block_types {
	struct string_table names; /* their source, and what they are called */
	struct type_figures *list; /* by the number of their names */
	uint64_t bytes;            /* of all */
	bool full;                 /* there are more types than are told apart: they are not named */
	bool over;                 /* the budget is used up: what was not read is not in the sums */
	struct map by_word;        /* number of the type + 1; 0: none */
};

/* Is a block, by where it begins, one of those that are asked for? */
typedef bool (*block_wanted_fn)(const void *context, uint64_t block);

/* wanted: NULL: all. block_types_free afterwards; on failure, too. */
int block_types_take(struct block_types *t, const struct census_heap *h, struct census_memory *memory,
                     block_wanted_fn wanted, const void *context, struct err *e) WARN_UNUSED;
void block_types_free(struct block_types *t);
/* What type number i is called. */
const char *block_types_name(const struct block_types *t, size_t i);
const char *type_source_name(enum type_source source);
