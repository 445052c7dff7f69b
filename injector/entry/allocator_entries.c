/* SPDX-License-Identifier: MIT */
/* Reads the code at each entry, from memory because that is what runs, and has its hook planned. */
#include <stdlib.h>
#include <string.h>

#include "allocator_internal.h"
#include "cleanup.h"
#include "grow.h"

struct entry_planner {
	struct finder *f;
	const struct module_view *v;
	struct entry_code_range *taken; /* islands */
	size_t taken_count;
};

/* The function, what is before it and what is behind: one piece of memory. */
static int read_around(const struct entry_planner *p, struct entry_code_function *out, uint64_t address, uint64_t bytes,
                       uint8_t **code, struct err *e)
{
	uint64_t before = function_before(&p->v->table, address);
	uint64_t end = address + bytes;
	uint64_t after = function_after(&p->v->table, address);

	/* What begins within it is a part of it (an entry behind endbr64), or its size is wrong. */
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
	AUTO_FREE uint8_t *memory = malloc(after - before);
	if (!memory)
		return err_set(e, ENOMEM, "no memory for the code of a function");
	r = target_read(&p->f->memory, before, memory, after - before, e);
	if (r)
		return r;
	*out = (struct entry_code_function){ .address = address,
		                             .code = memory + (address - before),
		                             .bytes = bytes,
		                             .before = before < address ? memory : NULL,
		                             .before_bytes = address - before,
		                             .after = memory + (end - before),
		                             .after_bytes = after - end,
		                             .taken = p->taken,
		                             .taken_count = p->taken_count };
	*code = steal_pointer(&memory);
	return 0;
}

/* A breakpoint, a uprobe or another tool's hook stands in memory, and not in the file. */
static int check_untouched(const struct entry_planner *p, const struct entry_code_function *f, struct err *e)
{
	AUTO_FREE uint8_t *file = malloc(f->bytes);
	struct err ignored;

	if (!file)
		return err_set(e, ENOMEM, "no memory for the code of a function");
	if (p->v->file.fd < 0 || module_file_read(&p->v->file, f->address, file, f->bytes, &ignored) ||
	    !memcmp(file, f->code, f->bytes))
		return 0;
	return err_set(e, ENOTSUP, "its code was changed since it was loaded");
}

static int take_island(struct entry_planner *p, const struct entry_code_plan *plan, struct err *e)
{
	if (!plan->island)
		return 0;
	if (!grow_list(p->taken, p->taken_count))
		return err_set(e, ENOMEM, "no memory for the plan");
	p->taken[p->taken_count++] = (struct entry_code_range){ plan->island, plan->island + ENTRY_JUMP_BYTES };
	return 0;
}

static bool is_shared(const struct entry_planner *p, const struct allocator_function *fn)
{
	const struct mapping *m = maps_find(p->f->in->maps, fn->address);

	return m && m->shared;
}

static int plan_one(struct entry_planner *p, struct allocator_function *fn, struct err *e)
{
	AUTO_FREE uint8_t *code = NULL;
	struct entry_code_function around;
	struct err why = { 0 };
	int r = 0;

	if (is_shared(p, fn))
		r = err_set(&why, ENOTSUP, "its code is a shared mapping, not this process's own");
	else if (!fn->bytes)
		r = err_set(&why, ENOTSUP, "where it ends is not known");
	else if (fn->bytes > ENTRY_BODY_MAX)
		r = err_set(&why, ENOTSUP, "it is longer than %u bytes", ENTRY_BODY_MAX);
	if (!r)
		r = read_around(p, &around, fn->address, fn->bytes, &code, &why);
	if (!r)
		r = check_untouched(p, &around, &why);
	if (!r)
		around.entered = fn->entered;
	if (!r)
		r = entry_code_plan_make(&fn->entry, &around, &why);
	if (r == -ENOTSUP || r == -EFAULT) {
		snprintf(fn->entry_refusal, sizeof fn->entry_refusal, "%.63s", why.text);
		return 0;
	}
	if (r) {
		*e = why;
		return r;
	}
	return take_island(p, &fn->entry, e);
}

int find_entries(struct finder *f, const struct module_view *v, struct err *e)
{
	struct entry_planner p = { f, v, NULL, 0 };
	int r = 0;

	for (size_t i = 0; i < f->out.function_count && !r; i++)
		if (f->out.functions[i].module == v->module)
			r = plan_one(&p, &f->out.functions[i], e);
	free(p.taken);
	return r;
}
