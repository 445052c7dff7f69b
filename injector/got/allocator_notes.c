/* SPDX-License-Identifier: MIT */
/*
 * Allocators that a module carries inside, bound at link time: no GOT entry leads to them, so what they do is not
 * seen. Best effort, by name.
 */
#include "got/got_planner.h"

struct search {
	const struct known_allocator *what;
};

static bool on_symbol(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	struct search *s = context;

	(void)address;
	(void)bytes;
	if (type != STT_FUNC)
		return true;
	s->what = known_allocator_with_malloc(name);
	return !s->what;
}

static const struct known_allocator *by_dynamic_symbols(const struct elf_module *m)
{
	const struct known_allocator *known;
	struct elf_symbol s;

	for (size_t i = 0; (known = known_allocator(i)); i++)
		for (unsigned k = 0; k < KNOWN_MALLOCS && known->mallocs[k]; k++)
			if (elf_module_find(m, known->mallocs[k], NULL, &s) && s.function)
				return known;
	return NULL;
}

/* GOT entries lead to its malloc (or whatever it defines): then it is seen. */
static bool is_bound_to(const struct planner *p, uint32_t module)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->candidates[i].definer == module && listed_hook_allocates(p->candidates[i].plan.hook))
			return true;
	return false;
}

int planner_allocator_notes(struct planner *p, struct err *e)
{
	for (uint32_t i = 0; i < p->m->count; i++) {
		const struct elf_module *m = &p->m->list[i];
		struct search s = { 0 };

		if (m == p->libc->module || m == p->libc->allocator || m->is_loader || m->is_vdso || is_bound_to(p, i))
			continue;
		s.what = by_dynamic_symbols(m);
		if (!s.what)
			module_file_symbols(planner_file(p, i), on_symbol, &s);
		planner_close_file(p, i);
		const struct plan_note note = { .kind = NOTE_CONTAINS, .module = i, .allocator = s.what };
		int r = s.what ? planner_note(p, &note, e) : 0;
		if (r)
			return r;
	}
	return 0;
}
