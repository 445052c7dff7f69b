/* SPDX-License-Identifier: MIT */
/* What does the present value of a GOT entry stand for? See got_plan.h for the cases. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/code.h"
#include "got/entry_place.h"
#include "got/got_planner.h"

static uint32_t index_of(const struct planner *p, const struct elf_module *m)
{
	return m ? (uint32_t)(m - p->m->list) : UINT32_MAX;
}

static void answer(const struct planner *p, struct entry_answer *a, const struct elf_module *definer,
                   const struct elf_symbol *s)
{
	a->original = s->address;
	a->definer = index_of(p, definer);
	a->definer_bytes = s->bytes;
}

static bool is_lazy_stub(const struct planner *p, const struct entry_question *q)
{
	uint32_t number;

	return q->relocation == RELOCATION_JUMP_SLOT &&
	       entry_place_lazy_stub(&p->m->list[q->module], p->tm, q->value, &number) &&
	       (number == q->number || number == LAZY_STUB_ANY);
}

/*
 * Is value the PLT stub that stands for &name in this non-PIE program? Such a symbol is undefined, but has a
 * value.
 */
static bool is_canonical_stub(const struct planner *p, const struct elf_module *m, const char *name, uint64_t value)
{
	if (m->type != ET_EXEC || budget_work(p->budget, m->symbol_count, ERR_IGNORED) < 0)
		return false;
	for (uint32_t i = 1; i < m->symbol_count; i++) {
		const Elf64_Sym *s = &m->symbols[i];
		if (s->st_shndx == SHN_UNDEF && s->st_value && m->bias + s->st_value == value &&
		    !strcmp(elf_module_symbol_name(m, i), name))
			return true;
	}
	return false;
}

/* Looks the symbol up as the loader would. */
static bool bind(const struct planner *p, const struct entry_question *q, struct entry_answer *a)
{
	const struct elf_module *from = &p->m->list[q->module];
	struct elf_symbol s;
	const struct elf_module *definer =
		scope_find(p->scope, from, listed_hook_symbol(q->hook), elf_module_symbol_version(from, q->symbol), &s);

	if (!definer || s.ifunc || !s.function) {
		snprintf(a->reason, sizeof a->reason,
		         definer ? "its function is chosen at run time and not bound yet"
		                 : "it is not bound yet and no module defines it");
		return false;
	}
	answer(p, a, definer, &s);
	return true;
}

/*
 * The stub's own GOT entry, if it is understood already: what calls through the stub reach. The program is planned
 * first.
 */
static bool through_stub(const struct planner *p, const struct entry_question *q, uint32_t program,
                         struct entry_answer *a)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct candidate *c = &p->candidates[i];

		if (c->plan.module != program || c->plan.hook != q->hook || c->plan.relocation != RELOCATION_JUMP_SLOT)
			continue;
		a->original = c->plan.original;
		a->definer = c->definer;
		a->definer_bytes = c->definer_bytes;
		return true;
	}
	return bind(p, q, a);
}

/* One of its functions, which it exports and which has a name that is not on the list. It calls listed ones itself. */
static bool is_function_of_caller(const struct planner *p, const struct elf_module *m, uint64_t value)
{
	bool calls = false, is_function = false;

	if (budget_work(p->budget, m->symbol_count, ERR_IGNORED) < 0)
		return false;
	for (uint32_t i = 1; i < m->symbol_count; i++) {
		const Elf64_Sym *s = &m->symbols[i];

		if (s->st_shndx == SHN_UNDEF)
			calls |= listed_hook_by_symbol(elf_module_symbol_name(m, i)) < HOOK_COUNT;
		else
			is_function |= ELF64_ST_TYPE(s->st_info) == STT_FUNC && m->bias + s->st_value == value;
	}
	return calls && is_function;
}

/*
 * A word of writable data is the program's own: it may have put another function there. Of its module: Debian 13's
 * redis-server does so with the allocator's table of a library that it carries. Or of another one: CPython's _decimal
 * with PyMem_Malloc for that of its library. A hook that another tool has put there is no exported function.
 */
static bool is_redirected_by_program(const struct planner *p, const struct entry_question *q,
                                     const struct elf_module *holder)
{
	const struct mapping *map = maps_find(p->maps, q->address);

	return q->relocation == RELOCATION_WORD && map && (map->prot & PROT_WRITE) &&
	       (holder == &p->m->list[q->module] || is_function_of_caller(p, holder, q->value));
}

enum entry_verdict planner_resolve_entry(const struct planner *p, const struct entry_question *q,
                                         struct entry_answer *a)
{
	const char *name = listed_hook_symbol(q->hook);
	const struct elf_module *holder = modules_find(p->m, q->value, true);
	struct elf_symbol s;

	if (q->value == 0)
		return VERDICT_NOTHING;
	if (!holder) {
		const struct mapping *map = maps_find(p->maps, q->value);
		snprintf(a->reason, sizeof a->reason, "it leads to 0x%" PRIx64 " (%.60s)", q->value,
		         !map           ? "not mapped"
		         : map->path[0] ? map->path
		                        : "anonymous memory");
		return VERDICT_FOREIGN;
	}
	if (elf_module_defines_at(holder, name, q->value, &s)) {
		answer(p, a, holder, &s);
		return VERDICT_GOOD;
	}
	if (is_lazy_stub(p, q))
		return bind(p, q, a) ? VERDICT_GOOD : VERDICT_FOREIGN;
	if (is_canonical_stub(p, holder, name, q->value))
		return through_stub(p, q, index_of(p, holder), a) ? VERDICT_GOOD : VERDICT_FOREIGN;
	/* The choice of an ifunc's resolver has no name of its own in the dynamic symbol table. */
	if (elf_module_defines_ifunc(holder, name)) {
		s = (struct elf_symbol){ .address = q->value };
		answer(p, a, holder, &s);
		return VERDICT_GOOD;
	}
	if (is_redirected_by_program(p, q, holder))
		return VERDICT_NOTHING;
	snprintf(a->reason, sizeof a->reason, "it leads to 0x%" PRIx64 " in %.60s, which is not that function",
	         q->value, elf_module_name(holder));
	return VERDICT_FOREIGN;
}
