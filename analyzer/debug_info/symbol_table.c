/* SPDX-License-Identifier: MIT */
#include "debug_info/symbol_table.h"

#include <gelf.h>
#include <hooks.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"

static bool is_allocator_name(const char *name)
{
#define SYMBOL_NAME_(id, symbol, shape, size, group) symbol,
	static const char *const names[] = { HOOK_LIST(SYMBOL_NAME_) };
#undef SYMBOL_NAME_

	if (!strncmp(name, "__GI_", 5))
		name += 5;
	if (!strncmp(name, "__libc_", 7))
		name += 7;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Among aliases: global before weak before local, then the one with the fewest leading underscores. */
static uint8_t rank_of(const char *name, unsigned bind)
{
	uint8_t underscores = 0;

	while (name[underscores] == '_' && underscores < 7)
		underscores++;
	if (underscores == 1 && (name[1] == 'Z' || name[1] == 'R'))
		underscores = 0;
	return (uint8_t)(underscores * 4 + (bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2));
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a;
	const struct symbol *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if ((x->end == x->start) != (y->end == y->start))
		return x->end == x->start ? 1 : -1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Leaves one symbol for each address: the best name, the largest extent. */
static void merge_aliases(struct symbol_table *table)
{
	size_t kept = 0;
	uint64_t reach = 0;

	for (size_t i = 0; i < table->count; i++) {
		struct symbol *s = &table->list[i];
		struct symbol *last = kept ? &table->list[kept - 1] : NULL;
		if (last && last->start == s->start) {
			last->allocator |= s->allocator;
			if (s->end > last->end)
				last->end = s->end;
		} else {
			table->list[kept++] = *s;
		}
		last = &table->list[kept - 1];
		if (last->end > reach)
			reach = last->end;
		last->reach = reach;
	}
	table->count = kept;
}

int symbol_table_load(struct symbol_table *table, Dwfl_Module *module)
{
	int n = dwfl_module_getsymtab(module);

	*table = (struct symbol_table){ 0 };
	if (n <= 0)
		return 0;
	table->list = calloc((size_t)n, sizeof *table->list);
	if (!table->list)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		GElf_Sym sym;
		GElf_Addr address;
		GElf_Word section;
		const char *name = dwfl_module_getsym_info(module, i, &sym, &address, &section, NULL, NULL);
		unsigned type = GELF_ST_TYPE(sym.st_info);
		if (!name || !name[0] || section == SHN_UNDEF || section == SHN_ABS)
			continue;
		if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
			continue;
		uint64_t end = address + sym.st_size;
		table->list[table->count++] = (struct symbol){
			.start = address,
			.end = end < address ? address : end,
			.name = name,
			.section = section,
			.rank = rank_of(name, GELF_ST_BIND(sym.st_info)),
			.allocator = type != STT_NOTYPE && is_allocator_name(name),
		};
	}
	qsort(table->list, table->count, sizeof *table->list, compare_symbols);
	merge_aliases(table);
	return 0;
}

void symbol_table_done(struct symbol_table *table)
{
	free(table->list);
	*table = (struct symbol_table){ 0 };
}

const struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address)
{
	size_t low = SORTED_UP_TO(table->list, table->count, start, address);

	if (!low)
		return NULL;
	const struct symbol *nearest = &table->list[low - 1];
	for (const struct symbol *s = nearest; s >= table->list && s->reach > address; s--)
		if (s->end > address)
			return s;
	if (nearest->end == nearest->start && address - nearest->start < SYMBOL_LABEL_REACH)
		return nearest;
	return NULL;
}
