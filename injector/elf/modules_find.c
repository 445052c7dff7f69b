/* SPDX-License-Identifier: MIT */
/* Searching the list of modules, and numbering it (modules.h). */
#include <string.h>

#include "arch/java_frame.h"
#include "elf/modules.h"

struct elf_module *modules_find(const struct modules *m, uint64_t address, bool exec)
{
	for (size_t i = 0; i < m->count; i++) {
		struct elf_module *module = &m->list[i];
		if (address >= module->start && address < module->end &&
		    elf_module_holds(module, address, 1, exec ? PF_X : 0))
			return module;
	}
	return NULL;
}

const struct elf_module *modules_main(const struct modules *m)
{
	return m->count && m->list[0].is_main ? &m->list[0] : NULL;
}

const struct elf_module *modules_with_id(const struct modules *m, uint32_t id)
{
	for (size_t i = 0; i < m->count && id; i++)
		if (m->list[i].id == id)
			return &m->list[i];
	return NULL;
}

const struct elf_module *modules_loader(const struct modules *m)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->list[i].is_loader)
			return &m->list[i];
	return NULL;
}

bool elf_module_same(const struct elf_module *a, const struct elf_module *b)
{
	return a->link_map == b->link_map && a->bias == b->bias && a->header == b->header && a->inode == b->inode &&
	       a->dev_major == b->dev_major && a->dev_minor == b->dev_minor && a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes) && !strcmp(a->path, b->path);
}

void modules_number(struct modules *m, const struct modules *old, uint32_t *next_id)
{
	for (size_t i = 0; i < m->count; i++) {
		struct elf_module *module = &m->list[i];

		module->id = 0;
		for (size_t k = 0; old && k < old->count && !module->id; k++)
			if (elf_module_same(module, &old->list[k]))
				module->id = old->list[k].id;
		if (!module->id && *next_id < JAVA_FRAME_MODULES)
			module->id = (*next_id)++;
	}
}
