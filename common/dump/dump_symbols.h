/* SPDX-License-Identifier: MIT */
/*
 * The names that a dump has of its frames (struct dump_symbols in dump_format.h), as one block of memory. Who has made
 * it is not known: nothing but dump_symbols_are_sound may be asked before that has said yes. Afterwards no place leads
 * outside of the block; what the strings hold is anything.
 */
#pragma once

#include "dump/dump_reader.h"

bool dump_symbols_are_sound(const struct dump_symbols *symbols, size_t bytes);
uint64_t dump_symbols_bytes(uint64_t places, uint64_t modules, uint64_t locations, uint64_t string_bytes);

const struct dump_symbol_place *dump_symbols_places(const struct dump_symbols *symbols);
const struct dump_symbol_module *dump_symbols_modules(const struct dump_symbols *symbols);
const struct dump_symbol_location *dump_symbols_locations(const struct dump_symbols *symbols);
/* NULL for DUMP_SYMBOLS_NONE. */
const char *dump_symbols_string(const struct dump_symbols *symbols, uint32_t at);

/*
 * Those of a dump: *symbols is sound and to be freed, or NULL if it has none. Those that are not sound are counted as
 * left out. 0, -ENOMEM.
 */
int dump_symbols_read(struct dump *dump, struct dump_symbols **symbols) WARN_UNUSED;
