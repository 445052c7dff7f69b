/* SPDX-License-Identifier: MIT */
#include "census/blocks/data_symbols.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sorted.h"
#include "census/blocks/type_names.h"
#include "elf/module_file.h"

#define SYMBOLS_MAX (1u << 20)
#define NAMES_MAX (64u << 20)
#define MANGLED_MAX 400u

struct reading {
	struct data_symbols *symbols;
	uint32_t module;
};

static bool add(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	const struct reading *r = context;
	struct data_symbols *s = r->symbols;
	const size_t length = strlen(name) + 1;

	if (type != STT_OBJECT || !bytes || !name[0] || address + bytes < address)
		return true;
	if (s->count == SYMBOLS_MAX || s->used + length > NAMES_MAX)
		return false;
	if (s->used + length > s->room) {
		const size_t room = 2 * s->room + length + 65536;
		char *more = realloc(s->names, room);
		if (!more)
			return false;
		s->names = more;
		s->room = room;
	}
	if (!grow_list(s->list, s->count))
		return false;
	memcpy(s->names + s->used, name, length);
	s->list[s->count++] = (struct data_symbol){ address, address + bytes, (uint32_t)s->used, r->module };
	s->used += length;
	return true;
}

static void read_exported(struct reading *r, const struct elf_module *m)
{
	for (uint32_t i = 0; i < m->symbol_count; i++) {
		const Elf64_Sym *symbol = &m->symbols[i];
		if (symbol->st_shndx != SHN_UNDEF && !add(r, elf_module_symbol_name(m, i), m->bias + symbol->st_value,
		                                          symbol->st_size, ELF64_ST_TYPE(symbol->st_info)))
			return;
	}
}

static int compare(const void *a, const void *b)
{
	const struct data_symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

void data_symbols_read(struct data_symbols *s, const struct target_memory *memory, const struct maps *maps)
{
	*s = (struct data_symbols){ 0 };
	s->has_modules = modules_read(&s->modules, memory, maps, ERR_IGNORED) == 0;
	for (size_t i = 0; s->has_modules && i < s->modules.count; i++) {
		struct reading r = { s, (uint32_t)i };
		struct module_file file;
		module_file_open(&file, &s->modules.list[i], memory, maps);
		if (!module_file_symbols(&file, add, &r))
			read_exported(&r, &s->modules.list[i]);
		module_file_close(&file);
	}
	if (s->count)
		qsort(s->list, s->count, sizeof *s->list, compare);
}

void data_symbols_free(struct data_symbols *s)
{
	if (s->has_modules)
		modules_free(&s->modules);
	free(s->list);
	free(s->names);
	*s = (struct data_symbols){ 0 };
}

const struct data_symbol *data_symbols_find(const struct data_symbols *s, uint64_t address)
{
	const size_t i = SORTED_UP_TO(s->list, s->count, address, address);

	return i && address < s->list[i - 1].end ? &s->list[i - 1] : NULL;
}

/* Itanium C++ ABI, 5.1: _Z6orders, _ZL6orders, _ZN4shopL6ordersE. */
const char *data_symbol_name(const struct data_symbols *s, const struct data_symbol *symbol,
                             char text[DATA_SYMBOL_NAME])
{
	const char *name = s->names + symbol->name;
	char plain[MANGLED_MAX];
	size_t n = 0;

	snprintf(text, DATA_SYMBOL_NAME, "%s", name);
	if (strncmp(name, "_Z", 2) != 0 || strlen(name) >= sizeof plain)
		return text;
	for (const char *at = name + 2; *at; at++)
		if (*at != 'L' || !isdigit((unsigned char)at[1])) /* local to its file */
			plain[n++] = *at;
	plain[n] = '\0';
	if (!type_name_demangle(plain, text))
		snprintf(text, DATA_SYMBOL_NAME, "%s", name);
	return text;
}

bool data_symbols_describe(const struct data_symbols *s, uint64_t address, char text[DATA_SYMBOL_NAME])
{
	const struct data_symbol *symbol = data_symbols_find(s, address);
	const struct elf_module *m = symbol           ? &s->modules.list[symbol->module]
	                             : s->has_modules ? modules_find(&s->modules, address, false)
	                                              : NULL;
	char name[DATA_SYMBOL_NAME];

	if (!m)
		return false;
	if (symbol)
		snprintf(text, DATA_SYMBOL_NAME, "%.80s (%.40s)", data_symbol_name(s, symbol, name),
		         elf_module_name(m));
	else
		snprintf(text, DATA_SYMBOL_NAME, "%.80s+0x%" PRIx64 " (no name)", elf_module_name(m),
		         address - m->bias);
	return true;
}
