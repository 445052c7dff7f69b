/* SPDX-License-Identifier: MIT */
#include "python/python_find.h"

#include <string.h>

#include "elf/module_file.h"
#include "python/python_releases.h"
#include "python/python_version.h"
#include "elf/scope.h"

#define RUNTIME_SYMBOL "_PyRuntime"
#define RUNTIME_SECTION ".PyRuntime"

static void add(struct python_runtime *list, uint32_t *count, const struct elf_module *m, uint64_t address)
{
	if (*count < PYTHON_RUNTIMES_MAX && elf_module_holds(m, address, 8, PF_W))
		list[(*count)++] = (struct python_runtime){ .module = m, .address = address };
}

static void find_exported(struct python_runtime *list, uint32_t *count, const struct modules *modules)
{
	struct elf_symbol s;

	for (size_t i = 0; i < modules->count; i++)
		if (elf_module_find(&modules->list[i], RUNTIME_SYMBOL, NULL, &s) && !s.function)
			add(list, count, &modules->list[i], s.address);
}

static bool on_symbol(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	uint64_t *found = context;

	(void)bytes;
	if (type != STT_OBJECT || strcmp(name, RUNTIME_SYMBOL) != 0)
		return true;
	*found = address;
	return false;
}

static void find_hidden(struct python_runtime *list, uint32_t *count, const struct elf_module *m,
                        const struct maps *maps, const struct target_memory *tm)
{
	struct module_file f;
	uint64_t address = 0, bytes;

	module_file_open(&f, m, tm, maps);
	if (!module_file_section_place(&f, RUNTIME_SECTION, &address, &bytes) &&
	    (m->is_main || strstr(elf_module_name(m), "python")))
		(void)module_file_symbols(&f, on_symbol, &address);
	module_file_close(&f);
	if (address)
		add(list, count, m, address);
}

int python_find(struct python_runtime *list, uint32_t *count, const struct modules *modules, const struct maps *maps,
                const struct target_memory *tm, struct err *e)
{
	uint32_t found = 0;
	int rc = 0;

	find_exported(list, &found, modules);
	for (size_t i = 0; i < modules->count && found == 0; i++)
		if (!modules->list[i].is_vdso && !modules->list[i].is_loader)
			find_hidden(list, &found, &modules->list[i], maps, tm);
	for (uint32_t i = 0; i < found && rc == 0; i++)
		rc = python_version_read(&list[i], maps, tm, e);
	rc = rc ?: budget_check(tm->budget, e);
	if (rc == 0)
		*count = found;
	return rc;
}

const char *python_stay_refusal(const struct python_runtime *r, const struct modules *modules, struct budget *budget)
{
	struct scope *scope = scope_new(modules, budget);
	bool stays = scope && scope_stays(scope, r->module);

	scope_free(scope);
	return stays ? NULL
	             : "the program has loaded it by dlopen, and may unload it; it stays where "
	               "the program is started with LD_PRELOAD and its path";
}

const char *python_version_refusal(const struct python_version *v)
{
	if (!v->minor)
		return "its version cannot be told";
	if (v->free_threaded)
		return "it is a free-threaded build";
	if (v->debug)
		return "it is a debug build";
	if (!python_release_find(v->minor))
		return "the structures of this version are not known";
	if (v->release == '?')
		return "whether it is a release cannot be told";
	if (v->release != 'f')
		return "it was made before the release of its version, with structures that were still to change";
	if (!v->flags_known)
		return "how it was built cannot be told";
	if (v->minor == 11 && v->patch < 1)
		return "in 3.11.0 frames stay linked while they are cleared";
	if (python_release_find(v->minor)->self[0].value && !v->describes_itself)
		return "it does not describe itself, as this version does";
	return NULL;
}
