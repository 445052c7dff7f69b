/* SPDX-License-Identifier: MIT */
/*
 * Where the allocator's functions are in an image: all addresses for which symbol_table_find gives one of them. Few
 * numbers, which can be kept when the table cannot.
 */
#pragma once

#include "debug_info/symbol_table.h"

struct symbol_range {
	uint64_t start, end;
};

struct symbol_ranges {
	struct symbol_range *list; /* ascending and apart */
	size_t count;
	bool known;
};

/* 0, -ENOMEM, or -E2BIG for a table that no compiler makes. */
int symbol_ranges_find(struct symbol_ranges *ranges, const struct symbol_table *table) WARN_UNUSED;
bool symbol_ranges_have(const struct symbol_ranges *ranges, uint64_t address);
void symbol_ranges_done(struct symbol_ranges *ranges);
