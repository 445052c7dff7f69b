/* SPDX-License-Identifier: MIT */
/* Variables of the modules of a process, by address: those of .symtab where there is one, else those that are exported.
 */
#pragma once

#include "elf/modules.h"

#define DATA_SYMBOL_NAME 128

struct data_symbol {
	uint64_t address, end;
	uint32_t name; /* offset in names */
	uint32_t module;
};

struct data_symbols {
	struct modules modules;
	bool has_modules;
	struct data_symbol *list; /* by address */
	size_t count;
	char *names;
	size_t used, room;
};

/* Without modules, or beyond what is kept of names, there are fewer. data_symbols_free afterwards. */
void data_symbols_read(struct data_symbols *s, const struct target_memory *memory, const struct maps *maps);
void data_symbols_free(struct data_symbols *s);

/* The variable that has an address, or NULL. */
const struct data_symbol *data_symbols_find(const struct data_symbols *s, uint64_t address);
/* "shop::orders (server)", or "server+0x4040 (no name)" of a module whose variable is not known. False: it is in no
 * module. */
bool data_symbols_describe(const struct data_symbols *s, uint64_t address, char text[DATA_SYMBOL_NAME]);
/* Its name as people read it. Returns text. */
const char *data_symbol_name(const struct data_symbols *s, const struct data_symbol *symbol,
                             char text[DATA_SYMBOL_NAME]);
