/* SPDX-License-Identifier: MIT */
#include "got/got_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "got/got_planner.h"
#include "base/grow.h"
#include "base/order.h"

#define NOTES_MAX 200u
#define REFUSALS_MAX 1000u

/* ---- growing the result ---- */

int planner_refuse(struct planner *p, const struct entry_plan *entry, struct err *e, const char *format, ...)
{
	va_list ap;

	if (p->out.refusal_count == REFUSALS_MAX)
		return planner_note(p, &(struct plan_note){ .kind = NOTE_MORE_REFUSALS, .module = entry->module }, e);
	if (!grow_list(p->out.refusals, p->out.refusal_count))
		return err_set(e, ENOMEM, "no memory for the plan");
	struct entry_refusal *r = &p->out.refusals[p->out.refusal_count++];
	*r = (struct entry_refusal){
		.module = entry->module, .hook = entry->hook, .address = entry->address, .value = entry->value
	};
	char why[ENTRY_REFUSAL_WHY];
	va_start(ap, format);
	vsnprintf(why, sizeof why, format, ap);
	va_end(ap);
	note_form_write(r->text, NOTE_FORM_ENTRY, elf_module_name(&p->m->list[entry->module]),
	                listed_hook_symbol(entry->hook), why);
	return 0;
}

int planner_note(struct planner *p, const struct plan_note *note, struct err *e)
{
	static const struct plan_note more = { .kind = NOTE_MORE, .module = UINT32_MAX };

	if (p->out.note_count == NOTES_MAX)
		return 0;
	if (!grow_list(p->out.notes, p->out.note_count))
		return err_set(e, ENOMEM, "no memory for the plan");
	p->out.notes[p->out.note_count] = p->out.note_count == NOTES_MAX - 1 ? more : *note;
	p->out.note_count++;
	return 0;
}

static int add_candidate(struct planner *p, const struct candidate *c, struct err *e)
{
	if (p->count == SESSION_ENTRY_MAX)
		return err_set(e, E2BIG,
		               "the program has more than %u GOT entries of allocation functions; nothing was changed",
		               SESSION_ENTRY_MAX);
	if (!grow_list(p->candidates, p->count))
		return err_set(e, ENOMEM, "no memory for the plan");
	p->candidates[p->count++] = *c;
	return 0;
}

/* ---- what is known about a module ---- */

struct module_file *planner_file(struct planner *p, uint32_t module)
{
	struct module_work *w = &p->work[module];

	if (!w->opened)
		module_file_open(&w->file, &p->m->list[module], p->tm, p->maps);
	w->opened = true;
	return &w->file;
}

void planner_close_file(struct planner *p, uint32_t module)
{
	if (p->work[module].opened)
		module_file_close(&p->work[module].file);
	p->work[module].opened = false;
}

struct candidate *planner_candidate(struct planner *p, uint32_t module, uint64_t address)
{
	if (budget_work(p->budget, p->count, ERR_IGNORED) < 0)
		return NULL;
	for (size_t i = 0; i < p->count; i++)
		if (p->candidates[i].plan.module == module && p->candidates[i].plan.address == address)
			return &p->candidates[i];
	return NULL;
}

const struct code_scan *planner_scan(struct planner *p, uint32_t module)
{
	struct module_work *w = &p->work[module];

	if (w->scanned)
		return w->scan_failed ? NULL : &w->scan;
	w->scanned = true;
	w->scan_failed = true;
	AUTO_FREE uint64_t *addresses = calloc(p->count + 1, sizeof *addresses);
	size_t count = 0;
	/*
	 * Words of RELOCATION_WORD are data: their value is always free to be copied, the code need not be asked.
	 */
	for (size_t i = 0; addresses && i < p->count; i++)
		if (p->candidates[i].plan.module == module && p->candidates[i].plan.relocation != RELOCATION_WORD)
			addresses[count++] = p->candidates[i].plan.address;
	if (!addresses || code_scan_module(&w->scan, planner_file(p, module), addresses, count, ERR_IGNORED))
		return NULL;
	w->scan_failed = false;
	p->out.text_bytes += w->scan.bytes;
	return &w->scan;
}

/* ---- collecting ---- */

/* A relocation against a listed function. */
struct found {
	uint64_t address;
	uint32_t symbol;
	uint32_t hook;
	uint32_t relocation;
	uint32_t number;
};

struct found_list {
	struct found *list;
	size_t count;
};

static int add_found(struct planner *p, struct found_list *l, const struct found *f, struct err *e)
{
	int r = budget_work(p->budget, l->count, e);

	if (r)
		return r;
	if (l->count == SESSION_ENTRY_MAX)
		return err_set(e, EFBIG, "it has more than %u GOT entries of allocation functions", SESSION_ENTRY_MAX);
	for (size_t i = 0; i < l->count; i++)
		if (l->list[i].address == f->address)
			return 0; /* DT_RELA may include DT_JMPREL */
	if (!grow_list(l->list, l->count))
		return err_set(e, ENOMEM, "no memory for the plan");
	l->list[l->count++] = *f;
	return 0;
}

static int find_in_table(struct planner *p, const struct elf_module *m, const struct elf_table *table,
                         const uint8_t *hook_of, struct found_list *l, struct err *e)
{
	AUTO_FREE Elf64_Rela *relas = NULL;
	size_t count;
	int r = elf_module_relocations(m, p->tm, table, &relas, &count, e);

	for (size_t i = 0; !r && i < count; i++) {
		uint32_t symbol = (uint32_t)ELF64_R_SYM(relas[i].r_info),
			 type = (uint32_t)ELF64_R_TYPE(relas[i].r_info);

		/*
		 * The addend counts in data only. In a jump GOT entry the loader does not look at it, and ld -z
		 * mark-plt keeps the address of the PLT entry there.
		 */
		if (symbol == 0 || symbol >= m->symbol_count || hook_of[symbol] >= HOOK_COUNT ||
		    (type != RELOCATION_JUMP_SLOT && type != RELOCATION_GLOB_DAT && type != RELOCATION_WORD) ||
		    (type == RELOCATION_WORD && relas[i].r_addend != 0))
			continue;
		r = add_found(
			p, l,
			&(struct found){ m->bias + relas[i].r_offset, symbol, hook_of[symbol], type, (uint32_t)i }, e);
	}
	return r;
}

_Static_assert(HOOK_COUNT < 255, "hook numbers fit a byte");

/* DT_JMPREL first: canonical stubs are understood by the program's own jump GOT entries. */
static int find_relocations(struct planner *p, const struct elf_module *m, struct found_list *l, struct err *e)
{
	AUTO_FREE uint8_t *hook_of = malloc(m->symbol_count + 1);

	if (!hook_of)
		return err_set(e, ENOMEM, "no memory for the plan");
	for (size_t i = 0; i < m->symbol_count; i++) {
		uint32_t hook = listed_hook_by_symbol(elf_module_symbol_name(m, (uint32_t)i));
		bool wanted = hook < HOOK_COUNT && p->options->groups & GROUP_BIT(listed_hook_group(hook));
		hook_of[i] = wanted ? (uint8_t)hook : 255;
	}
	int r = find_in_table(p, m, &m->jmprel, hook_of, l, e);
	return r ?: find_in_table(p, m, &m->rela, hook_of, l, e);
}

static const struct got_entry *patched_entry(const struct planner *p, uint64_t address)
{
	for (size_t i = 0; i < p->options->patched_count; i++)
		if (p->options->patched[i].address == address && p->options->patched[i].state == GOT_PATCHED &&
		    p->options->patched[i].trampoline < p->options->trampoline_count)
			return &p->options->patched[i];
	return NULL;
}

/* A GOT entry that we have patched before: its trampoline tells what it stands for. */
static int add_patched(struct planner *p, struct candidate *c, const struct got_entry *s, struct err *e)
{
	const struct control_trampoline *trampoline = &p->options->trampolines[s->trampoline];
	const struct elf_module *definer = modules_find(p->m, trampoline->original, true);
	struct elf_symbol symbol;

	c->patched = true;
	c->plan.hook = trampoline->hook;
	c->plan.original = trampoline->original;
	c->plan.value = s->old_value;
	c->definer = definer ? (uint32_t)(definer - p->m->list) : UINT32_MAX;
	if (definer &&
	    elf_module_defines_at(definer, listed_hook_symbol(trampoline->hook), trampoline->original, &symbol))
		c->definer_bytes = symbol.bytes;
	return add_candidate(p, c, e);
}

static int add_entry(struct planner *p, uint32_t module, const struct found *f, uint64_t value, struct err *e)
{
	struct entry_question q = { module, f->symbol, f->hook, f->address, value, f->relocation, f->number };
	struct entry_answer a = { .definer = UINT32_MAX };
	const struct mapping *map = maps_find(p->maps, f->address);
	struct candidate c = { .plan = { .address = f->address,
		                         .value = value,
		                         .hook = f->hook,
		                         .module = module,
		                         .relocation = f->relocation } };
	const struct got_entry *patched = patched_entry(p, f->address);
	int r = budget_work(p->budget, BUDGET_COMPARE * p->m->count + p->options->patched_count, e);

	if (r)
		return r;
	if (patched)
		return add_patched(p, &c, patched, e);
	switch (planner_resolve_entry(p, &q, &a)) {
	case VERDICT_NOTHING: return 0;
	case VERDICT_FOREIGN: return planner_refuse(p, &c.plan, e, "%s", a.reason);
	case VERDICT_GOOD: break;
	}
	if (f->address % 8 || !map || !(map->prot & PROT_READ) || map->shared)
		return planner_refuse(p, &c.plan, e, "its GOT entry is not an aligned word of private memory");
	c.plan.original = a.original;
	c.plan.page_protection = map->prot;
	c.definer = a.definer;
	c.definer_bytes = a.definer_bytes;
	return add_candidate(p, &c, e);
}

static int collect_module(struct planner *p, uint32_t module, struct err *e)
{
	const struct elf_module *m = &p->m->list[module];
	struct found_list l = { 0 };
	int r = find_relocations(p, m, &l, e);
	AUTO_FREE struct found *list = l.list;
	AUTO_FREE uint64_t *values = calloc(l.count + 1, sizeof *values);
	AUTO_FREE struct target_piece *pieces = calloc(l.count + 1, sizeof *pieces);

	if (r)
		return r;
	if (!values || !pieces)
		return err_set(e, ENOMEM, "no memory for the plan");
	for (size_t i = 0; i < l.count; i++)
		pieces[i] = (struct target_piece){ list[i].address, sizeof *values, &values[i] };
	r = target_read_batch(p->tm, pieces, l.count, e);
	for (size_t i = 0; !r && i < l.count; i++)
		r = add_entry(p, module, &list[i], values[i], e);
	return r;
}

/* glibc's loader keeps its own allocator in data that only it reads; its few GOT entries must stay as they are. */
static bool is_left_alone(const struct planner *p, const struct elf_module *m)
{
	return m->is_vdso || (m->is_loader && p->libc->kind == LIBC_GLIBC);
}

static int collect(struct planner *p, struct err *e)
{
	for (uint32_t i = 0; i < p->m->count; i++) {
		int r = is_left_alone(p, &p->m->list[i]) ? 0 : collect_module(p, i, e);

		if (r == -ESRCH || r == -ENOMEM || r == -E2BIG)
			return r;
		if (r) {
			struct plan_note note = { .kind = NOTE_UNREADABLE, .module = i };
			snprintf(note.why, sizeof note.why, "%.199s", e->text);
			r = planner_note(p, &note, e);
			if (r)
				return r;
		}
	}
	return 0;
}

/* ---- the result ---- */

static uint32_t find_trampoline(const struct planner *p, uint32_t hook, uint64_t original)
{
	for (uint32_t i = 0; i < p->out.trampoline_count; i++)
		if (p->out.trampolines[i].hook == hook && p->out.trampolines[i].original == original)
			return i;
	return UINT32_MAX;
}

static int give_trampoline(struct planner *p, struct entry_plan *s, struct err *e)
{
	s->trampoline = find_trampoline(p, s->hook, s->original);
	if (s->trampoline != UINT32_MAX)
		return 0;
	if (p->out.trampoline_count == TRAMPOLINE_MAX)
		return err_set(e, E2BIG, "the program uses more than %u different allocation functions",
		               TRAMPOLINE_MAX);
	s->trampoline = (uint32_t)p->out.trampoline_count;
	p->out.trampolines[p->out.trampoline_count++] =
		(struct control_trampoline){ .original = s->original, .hook = s->hook };
	return 0;
}

static bool is_hooked(const struct planner *p, const struct candidate *c)
{
	for (size_t i = 0; i < p->out.route_count; i++)
		if (p->out.routes[i].hook == c->plan.hook && p->out.routes[i].original == c->plan.original)
			return p->out.routes[i].hooked;
	return true;
}

static bool may_be_copied(struct planner *p, const struct candidate *c)
{
	const struct code_scan *scan = c->plan.relocation == RELOCATION_WORD ? NULL : planner_scan(p, c->plan.module);
	const struct code_entry *s = scan ? code_scan_entry(scan, c->plan.address) : NULL;

	return !s || !code_entry_call_only(s);
}

ORDER_BY_BOTH(compare_plans, struct entry_plan, module, address);

static int finish(struct planner *p, struct err *e)
{
	struct got_plan *out = &p->out;

	out->entries = calloc(p->count + 1, sizeof *out->entries);
	out->trampolines = calloc(TRAMPOLINE_MAX, sizeof *out->trampolines);
	if (!out->entries || !out->trampolines)
		return err_set(e, ENOMEM, "no memory for the plan");
	out->trampoline_count = p->options->trampoline_count < TRAMPOLINE_MAX ? p->options->trampoline_count
	                                                                      : TRAMPOLINE_MAX;
	if (out->trampoline_count)
		memcpy(out->trampolines, p->options->trampolines, out->trampoline_count * sizeof *out->trampolines);
	for (size_t i = 0; i < p->count; i++) {
		struct candidate *c = &p->candidates[i];

		if (c->patched || c->excluded || !is_hooked(p, c))
			continue;
		int r = give_trampoline(p, &c->plan, e);
		if (r)
			return r;
		c->plan.escapes = may_be_copied(p, c);
		out->entries[out->entry_count++] = c->plan;
	}
	if (out->entry_count > SESSION_ENTRY_MAX)
		return err_set(e, E2BIG, "the program has more than %u GOT entries of allocation functions",
		               SESSION_ENTRY_MAX);
	qsort(out->entries, out->entry_count, sizeof *out->entries, compare_plans);
	return 0;
}

static void planner_done(struct planner *p)
{
	for (size_t i = 0; p->work && i < p->m->count; i++) {
		if (p->work[i].opened)
			module_file_close(&p->work[i].file);
		code_scan_done(&p->work[i].scan);
	}
	free(p->work);
	free(p->candidates);
	scope_free(p->scope);
}

int got_plan_make(struct got_plan *plans, const struct modules *m, const struct libc *libc,
                  const struct target_memory *memory, const struct maps *maps, const struct got_plan_options *options,
                  struct err *e)
{
	struct budget budget;
	const struct target_memory metered = target_memory_charged(memory, &budget);
	struct planner p = {
		.m = m, .libc = libc, .tm = &metered, .maps = maps, .options = options, .budget = &budget
	};
	int r = 0;

	budget_start(&budget, BUDGET_PLAN_BYTES, BUDGET_PLAN_WORK);
	p.work = calloc(m->count + 1, sizeof *p.work);
	p.scope = scope_new(m, &budget);
	r = p.work && p.scope ? collect(&p, e) : err_set(e, ENOMEM, "no memory for the plan");
	r = r ?: planner_routes(&p, e);
	r = r ?: finish(&p, e);
	if (!r && !options->skip_notes)
		r = planner_allocator_notes(&p, e);
	planner_done(&p);
	if (budget.refusal.code)
		r = budget_check(&budget, e);
	if (r)
		got_plan_free(&p.out);
	else
		*plans = p.out;
	return r;
}

/* Takes the GOT entries out of which that is true. */
static int refuse_some(struct got_plan *plans, const struct modules *m,
                       bool (*is_refused)(const struct got_plan *, const struct entry_plan *), const char *why,
                       struct err *e)
{
	struct planner p = { .m = m, .out = *plans };
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < p.out.entry_count; i++) {
		const struct entry_plan s = p.out.entries[i];
		if (!is_refused(plans, &s))
			p.out.entries[kept++] = s;
		else if (!r)
			r = planner_refuse(&p, &s, e, "%s", why);
	}
	p.out.entry_count = kept;
	*plans = p.out;
	return r;
}

static bool throws(const struct got_plan *plans, const struct entry_plan *s)
{
	return listed_hook_throws(s->hook) && !plans->trampolines[s->trampoline].quiet;
}

int got_plan_refuse_throwing(struct got_plan *plans, const struct modules *m, struct err *e)
{
	return refuse_some(plans, m, throws,
	                   "it may throw, and no unwinder knows a payload that is not loaded by dlopen", e);
}

static bool escapes(const struct got_plan *plans, const struct entry_plan *s)
{
	(void)plans;
	return s->escapes;
}

int got_plan_refuse_escaping(struct got_plan *plans, const struct modules *m, struct err *e)
{
	return refuse_some(plans, m, escapes,
	                   "the program may copy what the GOT entry holds, and the function is not hooked at its entry",
	                   e);
}

void got_plan_leave(struct got_plan *plan, uint32_t module, uint32_t group)
{
	size_t kept = 0;

	for (size_t i = 0; i < plan->entry_count; i++)
		if (plan->entries[i].module != module || listed_hook_group(plan->entries[i].hook) != group)
			plan->entries[kept++] = plan->entries[i];
	plan->entry_count = kept;
}

void got_plan_free(struct got_plan *plans)
{
	free(plans->entries);
	free(plans->trampolines);
	free(plans->routes);
	free(plans->refusals);
	free(plans->notes);
	*plans = (struct got_plan){ 0 };
}
