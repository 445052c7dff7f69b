/* SPDX-License-Identifier: MIT */
/*
 * Has the hook of each entry planned, from the code in the module's file and in memory, because that is what runs. The
 * two differ where somebody has changed code: it is not touched then. But for uprobes, for which the kernel writes a
 * breakpoint wherever it likes: they may be where the hook leaves the code as it is.
 */
#include <stdlib.h>
#include <string.h>

#include "allocators/allocator_internal.h"
#include "base/cleanup.h"
#include "base/grow.h"
#include "arch/instruction.h"

struct entry_planner {
	struct finder *f;
	const struct module_view *v;
	struct entry_code_range *taken; /* islands */
	size_t taken_count;
	bool aliased;
};

/* The function, what is before it and what is behind, from start on: as the file has it, and as it is. */
struct around {
	uint64_t start;
	uint8_t *file, *now;
};

static int read_around(const struct entry_planner *p, struct entry_code_function *out, uint64_t address, uint64_t bytes,
                       struct around *a, struct err *e)
{
	uint64_t before = function_table_before(&p->v->table, address);
	uint64_t end = address + bytes;
	uint64_t after = function_table_after(&p->v->table, address);

	/* What begins within it is a part of it (an entry behind a landing pad), or its size is wrong. */
	if (after && after < end)
		return err_set(e, ENOTSUP, "another function begins inside of it");
	if (!before || address - before > ENTRY_BODY_MAX)
		before = address;
	if (!after || after > end + ENTRY_AFTER_MAX)
		after = end + ENTRY_AFTER_MAX;
	if (!elf_module_holds(p->v->file.module, end, after - end, PF_X))
		after = end;
	int r = budget_work(&p->f->budget, DECODE_COST * (after - before), e);
	if (r)
		return r;
	a->start = before;
	a->file = malloc(after - before);
	a->now = malloc(after - before);
	if (!a->file || !a->now)
		return err_set(e, ENOMEM, "no memory for the code of a function");
	r = target_read(&p->f->memory, before, a->now, after - before, e);
	r = r ?: module_file_read(&p->v->file, before, a->file, after - before, e);
	if (r)
		return r;
	*out = (struct entry_code_function){ .address = address,
		                             .code = a->file + (address - before),
		                             .bytes = bytes,
		                             .before = before < address ? a->file : NULL,
		                             .before_bytes = address - before,
		                             .after = a->file + (end - before),
		                             .after_bytes = after - end,
		                             .taken = p->taken,
		                             .taken_count = p->taken_count,
		                             .aliased = p->aliased };
	return 0;
}

/* Another tool's hook stands in memory, and not in the file. */
static int check_untouched(const struct around *a, const struct entry_code_function *f, struct err *e)
{
	const uint8_t *now = a->now + (f->address - a->start);

	for (size_t i = 0; i < f->bytes; i++)
		if (now[i] != f->code[i] && !instruction_is_breakpoint(now[i]))
			return err_set(e, ENOTSUP, "its code was changed since it was loaded");
	return 0;
}

static bool is_same(const struct around *a, uint64_t address, size_t bytes)
{
	return !memcmp(a->now + (address - a->start), a->file + (address - a->start), bytes);
}

static int check_probes(const struct around *a, const struct entry_code_plan *plan, struct err *e)
{
	if (is_same(a, plan->write_at, plan->displaced_bytes) &&
	    (!plan->island || is_same(a, plan->island, ENTRY_JUMP_BYTES)))
		return 0;
	return err_set(e, ENOTSUP, "a uprobe or a breakpoint is on its first instructions");
}

static int take(struct entry_planner *p, uint64_t island, struct err *e)
{
	if (!grow_list(p->taken, p->taken_count))
		return err_set(e, ENOMEM, "no memory for the plan");
	p->taken[p->taken_count++] = (struct entry_code_range){ island, island + ENTRY_JUMP_BYTES };
	return 0;
}

static bool is_shared(const struct entry_planner *p, const struct allocator_function *fn)
{
	const struct mapping *m = maps_find(p->f->in->maps, fn->address);

	return m && m->shared;
}

static int plan_one(struct entry_planner *p, struct allocator_function *fn, struct err *e)
{
	struct entry_code_function around;
	struct around a = { 0 };
	struct err why = { 0 };
	int r = 0;

	if (is_shared(p, fn))
		r = err_set(&why, ENOTSUP, "its code is a shared mapping, not this process's own");
	else if (!fn->bytes)
		r = err_set(&why, ENOTSUP, "where it ends is not known");
	else if (fn->bytes > ENTRY_BODY_MAX)
		r = err_set(&why, ENOTSUP, "it is longer than %u bytes", ENTRY_BODY_MAX);
	r = r ?: read_around(p, &around, fn->address, fn->bytes, &a, &why);
	r = r ?: check_untouched(&a, &around, &why);
	if (!r)
		around.entered = fn->entered;
	r = r ?: entry_code_plan_make(&fn->entry, &around, &why);
	r = r ?: check_probes(&a, &fn->entry, &why);
	free(a.file);
	free(a.now);
	if (r == -ENOTSUP || r == -EFAULT) {
		snprintf(fn->entry_refusal, sizeof fn->entry_refusal, "%.63s", why.text);
		return 0;
	}
	if (r) {
		*e = why;
		return r;
	}
	const uint64_t island = fn->entry.island;
	return island ? take(p, island, e) : 0;
}

int allocator_entries_find(struct finder *f, const struct module_view *v, struct err *e)
{
	/* By this name the interpreter is found whose table of allocators may be changed (python_allocators.h). */
	struct elf_symbol python;
	struct entry_planner p = { .f = f,
		                   .v = v,
		                   .aliased = elf_module_find(v->file.module, "PyObject_Malloc", NULL, &python) };
	int r = 0;

	for (size_t i = 0; i < f->out.function_count && !r; i++)
		if (f->out.functions[i].module == v->module)
			r = plan_one(&p, &f->out.functions[i], e);
	free(p.taken);
	return r;
}
