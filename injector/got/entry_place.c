/* SPDX-License-Identifier: MIT */
#include "got/entry_place.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "arch/code.h"
#include "base/cleanup.h"
#include "got/listed_hook.h"

bool entry_place_is_there(const struct maps *now, const struct maps *planned, uint64_t address)
{
	const struct mapping *m = maps_find(now, address), *was = planned ? maps_find(planned, address) : m;

	if (!m || !was || m->shared)
		return false;
	return !planned || (m->prot & PROT_READ && (m->inode ? mapping_same_file(m, was) : was->inode == 0));
}

enum got_found entry_place_inspect(const struct got_entry *entry, uint64_t trampolines, uint64_t original,
                                   const struct modules *modules, const struct maps *maps,
                                   const struct target_memory *memory)
{
	const struct elf_module *home = modules_find(modules, entry->address, false);
	uint64_t now;

	if (target_read_u64(memory, entry->address, &now, ERR_IGNORED) < 0)
		return GOT_FOUND_NOTHING;
	if (trampoline_is(trampolines, entry->trampoline, now))
		return GOT_FOUND_TRAMPOLINE;
	if (now == original || now == entry->old_value)
		return GOT_FOUND_ORIGINAL;
	/* In a fresh module that is the way to the loader; in the module that was patched another tool lives. */
	if (home && entry->state == GOT_GONE && modules_find(modules, now, true) == home)
		return GOT_FOUND_ORIGINAL;
	const struct mapping *m = maps_find(maps, now);
	return m && m->prot & PROT_EXEC ? GOT_FOUND_CODE : GOT_FOUND_DATA;
}

bool entry_place_lazy_stub(const struct elf_module *home, const struct target_memory *memory, uint64_t value,
                           uint32_t *number)
{
	uint8_t code[LAZY_STUB_BYTES];

	return elf_module_holds(home, value, sizeof code, PF_X) &&
	       !target_read(memory, value, code, sizeof code, ERR_IGNORED) && code_lazy_stub(code, number);
}

static bool table_names_function(const struct elf_module *m, const struct target_memory *memory,
                                 const struct elf_table *table, uint64_t address)
{
	AUTO_FREE Elf64_Rela *relas = NULL;
	size_t count = 0;

	if (elf_module_relocations(m, memory, table, &relas, &count, ERR_IGNORED) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint32_t symbol = (uint32_t)ELF64_R_SYM(relas[i].r_info);

		if (m->bias + relas[i].r_offset == address && symbol && symbol < m->symbol_count)
			return listed_hook_by_symbol(elf_module_symbol_name(m, symbol)) < HOOK_COUNT;
	}
	return false;
}

bool entry_place_is_hooked(const struct elf_module *home, const struct target_memory *memory, uint64_t address,
                           uint64_t value)
{
	uint32_t number;

	return !entry_place_lazy_stub(home, memory, value, &number) &&
	       (table_names_function(home, memory, &home->jmprel, address) ||
	        table_names_function(home, memory, &home->rela, address));
}
