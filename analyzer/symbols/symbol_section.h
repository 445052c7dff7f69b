/* SPDX-License-Identifier: MIT */
/*
 * Makes the names of a dump (struct dump_symbols in dump_format.h). What would make it larger than its limit is left
 * out, and the result says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump_format.h"
#include "input/location.h"
#include "base/map.h"

struct symbol_section {
	struct dump_symbol_place *places;
	struct dump_symbol_module *modules;
	struct dump_symbol_location *locations;
	char *strings;
	size_t place_count, module_count, location_count, string_bytes, string_room;
	struct map string_of; /* hash -> where it is in strings */
	size_t max_bytes;
	bool cut;    /* something had no room, or is missing for another reason */
	bool failed; /* no memory */
};

void symbol_section_init(struct symbol_section *section, size_t max_bytes);
void symbol_section_done(struct symbol_section *section);

/* No frame may be added twice; in any order. flags: DUMP_SYMBOL_ALLOCATOR. */
void symbol_section_place(struct symbol_section *section, uint64_t frame, uint16_t flags, const struct location *list,
                          size_t count);
/* The string of module->reason is taken from reason. */
void symbol_section_module(struct symbol_section *section, const struct dump_symbol_module *module, const char *reason);
/* To be freed; NULL: no memory. (*result)->bytes is its size. */
struct dump_symbols *symbol_section_build(struct symbol_section *section);
