/* SPDX-License-Identifier: MIT */
#include "loader.h"

#include <elf.h>

/* The start of struct dl_phdr_info (link.h); what follows is newer. */
struct phdr_info {
	uint64_t bias;
	const char *name;
	const Elf64_Phdr *headers;
	uint16_t header_count;
};

typedef int (*phdr_visit)(struct phdr_info *info, uint64_t bytes, void *data);
typedef int (*phdr_iterate)(phdr_visit visit, void *data);

struct visitor {
	loader_visit visit;
	void *context;
};

static int visit_one(struct phdr_info *info, uint64_t bytes, void *data)
{
	const struct visitor *v = data;

	if (bytes >= sizeof(*info) - sizeof(uint64_t) + sizeof(info->header_count)) {
		const struct loader_module module = { info->bias, info->headers, info->header_count };
		v->visit(&module, v->context);
	}
	return 0;
}

void loader_each_module(uint64_t dl_iterate_phdr, loader_visit visit, void *context)
{
	struct visitor v = { visit, context };

	((phdr_iterate)dl_iterate_phdr)(visit_one, &v);
}

bool loader_module_holds(const struct loader_module *module, uint64_t address)
{
	const Elf64_Phdr *headers = module->headers;

	for (uint32_t i = 0; i < module->header_count; i++) {
		uint64_t start = module->bias + headers[i].p_vaddr;

		if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_W) && address >= start &&
		    address - start + sizeof(uint64_t) <= headers[i].p_memsz)
			return true;
	}
	return false;
}
