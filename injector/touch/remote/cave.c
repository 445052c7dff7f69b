/* SPDX-License-Identifier: MIT */
#include "touch/remote/cave.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define CAVE_ALIGN 16u

/* The vdso is mapped whole, with section headers after its segment; the rest of its last page is nobody's. */
static bool cave_of_vdso(struct cave *cave, const struct elf_module *vdso, const struct target_memory *tm,
                         const struct maps *maps)
{
	const struct mapping *map = maps_find(maps, vdso->header);
	Elf64_Ehdr h;

	if (!map || map->start != vdso->header || map->inode || !(map->prot & PROT_EXEC) ||
	    target_read(tm, vdso->header, &h, sizeof h, ERR_IGNORED) < 0 || h.e_shoff > map->end - map->start)
		return false;
	uint64_t end = map->start + h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize;
	if (end < vdso->exec_end)
		end = vdso->exec_end;
	uint64_t address = (end + CAVE_ALIGN - 1) & ~(uint64_t)(CAVE_ALIGN - 1);
	if (address >= map->end || map->end - address >= PAGE)
		return false;
	*cave = (struct cave){ address, map->end - address, vdso };
	return true;
}

bool cave_of_module(struct cave *cave, const struct elf_module *module, const struct target_memory *tm,
                    const struct maps *maps)
{
	bool found = false;

	if (module->is_vdso)
		return cave_of_vdso(cave, module, tm, maps);
	for (size_t i = 0; i < module->phdr_count; i++) {
		const Elf64_Phdr *p = &module->phdrs[i];
		/* Memory after p_filesz would belong to the segment if p_memsz were larger. */
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || p->p_flags & PF_W || p->p_filesz != p->p_memsz ||
		    p->p_memsz == 0)
			continue;
		uint64_t end = module->bias + p->p_vaddr + p->p_memsz;
		uint64_t address = (end + CAVE_ALIGN - 1) & ~(uint64_t)(CAVE_ALIGN - 1);
		uint64_t page_end = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
		const struct mapping *map = maps_find(maps, end - 1);

		/*
		 * The page must be mapped from the module's file, executable, and no further segment may
		 * start in it.
		 */
		if (!map || !(map->prot & PROT_EXEC) || !map->inode || map->inode != module->inode || map->shared ||
		    map->end < page_end || address >= page_end || elf_module_holds(module, page_end - 1, 1, 0))
			continue;
		if (!found || page_end - address > cave->bytes) {
			*cave = (struct cave){ address, page_end - address, module };
			found = true;
		}
	}
	return found;
}

/* Of a cave only what is zero from its beginning on. */
static bool keep_zeros(const struct target_memory *tm, struct cave *cave)
{
	uint8_t bytes[PAGE];
	uint64_t zeros = 0;

	if (cave->bytes > PAGE || target_read(tm, cave->address, bytes, cave->bytes, ERR_IGNORED) < 0)
		return false;
	while (zeros < cave->bytes && !bytes[zeros])
		zeros++;
	cave->bytes = zeros;
	return true;
}

/* Modules that stay come first; the largest padding among equals does not matter. */
static unsigned rank(const struct elf_module *m)
{
	if (m->is_vdso)
		return 4;
	if (m->is_loader)
		return 0;
	if (!strcmp(m->soname, "libc.so.6"))
		return 1;
	return m->is_main ? 2 : 3;
}

int cave_find(struct cave *cave, const struct modules *m, const struct target_memory *tm, const struct maps *maps,
              uint64_t bytes, struct err *e)
{
	for (unsigned wanted = 0; wanted <= 4; wanted++) {
		for (size_t i = 0; i < m->count; i++) {
			const struct elf_module *module = &m->list[i];
			struct cave c;

			if (module->namespace_id != 0 || rank(module) != wanted ||
			    !cave_of_module(&c, module, tm, maps) || !keep_zeros(tm, &c) || c.bytes < bytes)
				continue;
			*cave = c;
			return 0;
		}
	}
	return err_set(e, ENOSPC, "no module has %lu unused bytes behind its code", (unsigned long)bytes);
}
