/* SPDX-License-Identifier: MIT */
/*
 * Allocators that a module carries inside, bound at link time: no GOT entry leads to them, so what they do is not
 * seen. Best effort, by name.
 */
#include <string.h>

#include "got/got_planner.h"

static const struct {
	const char *symbol;
	const char *what;
} markers[] = {
	{ "je_malloc", "jemalloc" },
	{ "_rjem_malloc", "jemalloc (Rust)" },
	{ "_rjem_je_malloc_default", "jemalloc (Rust)" },
	{ "je_malloc_default", "jemalloc" },
	{ "tc_malloc", "tcmalloc" },
	{ "TCMallocInternalMalloc", "tcmalloc" },
	{ "mi_malloc", "mimalloc" },
	{ "rpmalloc", "rpmalloc" },
	{ "scalable_malloc", "the TBB allocator" },
	{ "runtime.mallocgc", GO_ALLOCATOR },
	{ "malloc", "a malloc of its own" },
};

struct search {
	const char *what;
};

static bool on_symbol(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	struct search *s = context;

	(void)address;
	(void)bytes;
	if (type != STT_FUNC)
		return true;
	for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++)
		if (markers[i].symbol[0] == name[0] && !strcmp(markers[i].symbol, name))
			s->what = markers[i].what;
	return !s->what;
}

static const char *by_dynamic_symbols(const struct elf_module *m)
{
	struct elf_symbol s;

	for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++)
		if (elf_module_find(m, markers[i].symbol, NULL, &s) && s.function)
			return markers[i].what;
	return NULL;
}

/* GOT entries lead to its malloc (or whatever it defines): then it is seen. */
static bool is_bound_to(const struct planner *p, uint32_t module)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->candidates[i].definer == module && hook_allocates(p->candidates[i].plan.hook))
			return true;
	return false;
}

int plan_allocator_notes(struct planner *p, struct err *e)
{
	for (uint32_t i = 0; i < p->m->count; i++) {
		const struct elf_module *m = &p->m->list[i];
		struct search s = { 0 };

		if (m == p->libc->module || m == p->libc->allocator || m->is_loader || m->is_vdso || is_bound_to(p, i))
			continue;
		s.what = by_dynamic_symbols(m);
		if (!s.what)
			module_file_symbols(plan_file(p, i), on_symbol, &s);
		plan_close_file(p, i);
		int r = s.what ? plan_note(p, e, "%s contains %s: what it allocates by that is not seen",
		                           elf_module_name(m), s.what)
		               : 0;
		if (r)
			return r;
	}
	return 0;
}
