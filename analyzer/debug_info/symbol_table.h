/* SPDX-License-Identifier: MIT */
/*
 * The symbols of one image sorted by address (.symtab, .dynsym and .gnu_debugdata as libdwfl merges them), because its
 * own lookup is linear. A symbol names an address only if it covers it; one that merely precedes it does not, except
 * symbols without a size (assembler labels) up to the next symbol.
 */
#pragma once

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* How far a label without a size is believed to reach. */
#define SYMBOL_LABEL_REACH 65536u

struct symbol {
	uint64_t start;
	uint64_t end;     /* after the last byte; == start: no size */
	uint64_t reach;   /* the largest end of this and all before */
	const char *name; /* belongs to libelf */
	uint32_t section;
	uint8_t rank;   /* among names of one address the lowest is shown */
	bool allocator; /* this or an alias is one of the hooked functions */
};

struct symbol_table {
	struct symbol *list;
	size_t count;
};

int symbol_table_load(struct symbol_table *table, Dwfl_Module *module) WARN_UNUSED;
void symbol_table_done(struct symbol_table *table);
/* The symbol that covers the address, or NULL. */
const struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address);
