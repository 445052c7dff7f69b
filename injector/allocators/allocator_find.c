/* SPDX-License-Identifier: MIT */
#include "allocators/allocator_find.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/allocator_internal.h"
#include "base/cleanup.h"
#include "base/grow.h"

struct allocator_function *finder_function(const struct finder *f, uint64_t address)
{
	size_t low = 0, high = f->out.function_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (f->out.functions[f->by_address[mid]].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == f->out.function_count || f->out.functions[f->by_address[low]].address != address)
		return NULL;
	return &f->out.functions[f->by_address[low]];
}

/* ---- collecting ---- */

struct collector {
	struct finder *f;
	const struct module_view *v;
	size_t first; /* of this module's functions */
	int result;
	struct err *e;
};

/* The same while they are being collected. */
static struct allocator_function *known_function(struct collector *c, uint64_t address)
{
	struct allocators *out = &c->f->out;

	c->result = budget_work(&c->f->budget, out->function_count, c->e);
	for (size_t i = c->first; i < out->function_count; i++)
		if (out->functions[i].address == address)
			return &out->functions[i];
	return NULL;
}

static bool is_given(const struct allocators_input *in, const char *symbol, struct allocation_name *like)
{
	for (size_t i = 0; i < in->given_count; i++) {
		if (strcmp(in->given[i].symbol, symbol) == 0) {
			*like = in->given[i].name;
			return true;
		}
	}
	return false;
}

static void note_name(struct allocator_function *fn, const struct allocation_name *like)
{
	_Static_assert(HOOK_COUNT <= 64, "allocator_function.named");
	fn->named |= 1ull << like->hook;
	fn->own_name |= like->family != FAMILY_PLAIN && like->family != FAMILY_RUST && like->family != FAMILY_GIVEN;
}

/* A function has several names: one that tells whose it is wins over one that does not. */
static bool on_name(void *context, const char *symbol, uint64_t address, uint64_t bytes, unsigned type)
{
	struct collector *c = context;
	struct allocators *out = &c->f->out;
	struct allocation_name like;

	(void)type;
	if (!strcmp(symbol, "tc_query_new_mode"))
		c->f->asks_mode = address;
	bool given = is_given(c->f->in, symbol, &like);
	symbol = allocation_name_plain(symbol);
	if (!given && (strlen(symbol) >= ALLOCATOR_NAME_MAX || !allocation_name_read(symbol, &like)))
		return true;
	struct allocator_function *fn = known_function(c, address);
	if (c->result)
		return false;
	if (fn)
		note_name(fn, &like);
	if (fn && (given || fn->like.family == FAMILY_GIVEN)) {
		if (given)
			fn->like = like;
		return true;
	}
	if (fn) {
		if (fn->like.family == FAMILY_PLAIN)
			fn->like.family = like.family;
		if (!strcmp(symbol, listed_hook_symbol(like.hook)) &&
		    strcmp(fn->name, listed_hook_symbol(fn->like.hook)) != 0)
			snprintf(fn->name, sizeof fn->name, "%s", symbol);
		return true;
	}
	if (out->function_count == ALLOCATOR_FUNCTIONS_MAX || !grow_list(out->functions, out->function_count)) {
		c->result = err_set(c->e, E2BIG, "its modules have more than %u allocation functions",
		                    ALLOCATOR_FUNCTIONS_MAX);
		return false;
	}
	fn = &out->functions[out->function_count++];
	*fn = (struct allocator_function){ .module = c->v->module, .like = like, .address = address };
	note_name(fn, &like);
	snprintf(fn->name, sizeof fn->name, "%s", symbol);
	fn->bytes = function_table_bytes(&c->v->table, address, bytes);
	return true;
}

/* Names without a family belong to the module's allocator if it has one with a name. */
static void settle_families(struct finder *f, size_t first)
{
	enum allocator_family named = FAMILY_PLAIN;

	for (size_t i = first; i < f->out.function_count; i++) {
		enum allocator_family family = f->out.functions[i].like.family;
		if (family != FAMILY_PLAIN && family != FAMILY_RUST && family != FAMILY_GIVEN && named == FAMILY_PLAIN)
			named = family;
	}
	for (size_t i = first; i < f->out.function_count; i++)
		if (f->out.functions[i].like.family == FAMILY_PLAIN)
			f->out.functions[i].like.family = named;
}

static void view_open(struct module_view *v, struct finder *f, uint32_t module)
{
	v->module = module;
	module_file_open(&v->file, &f->in->modules->list[module], &f->memory, f->in->maps);
	function_table_open(&v->table, &v->file);
	v->jumps = NULL;
	v->jump_count = 0;
}

static void view_read_jumps(struct module_view *v, struct finder *f)
{
	const struct elf_module *m = v->file.module;

	if (elf_module_relocations(m, &f->memory, &m->jmprel, &v->jumps, &v->jump_count, ERR_IGNORED))
		v->jump_count = 0;
}

static void view_close(struct module_view *v)
{
	free(v->jumps);
	function_table_close(&v->table);
	module_file_close(&v->file);
}

static int by_place(const void *a, const void *b)
{
	const struct allocator_function *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->like.family != y->like.family)
		return x->like.family < y->like.family ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int by_address(const void *a, const void *b, void *context)
{
	const struct allocator_function *list = context;
	uint64_t x = list[*(const uint32_t *)a].address, y = list[*(const uint32_t *)b].address;

	return x < y ? -1 : x > y;
}

static int make_index(struct finder *f, struct err *e)
{
	f->by_address = calloc(f->out.function_count + 1, sizeof *f->by_address);
	if (!f->by_address)
		return err_set(e, ENOMEM, "no memory for the list of allocators");
	for (uint32_t i = 0; i < f->out.function_count; i++)
		f->by_address[i] = i;
	if (f->out.function_count)
		qsort_r(f->by_address, f->out.function_count, sizeof *f->by_address, by_address, f->out.functions);
	return 0;
}

/* Functions of the module, and an allocator for each family among them. */
static int collect(struct finder *f, uint32_t module, enum names_source *source, struct err *e)
{
	const struct elf_module *m = &f->in->modules->list[module];
	struct module_view v;
	struct collector c = { .f = f, .v = &v, .first = f->out.function_count, .e = e };

	view_open(&v, f, module);
	*source = module_names_each(&v.file, on_name, &c);
	if (!c.result && m->is_main) {
		f->out.program_has_names = *source != NAMES_DYNAMIC;
		if (c.first == f->out.function_count && !f->out.program_has_names)
			c.result = allocator_identify_by_text(f, &v, &f->out.program_text, e);
	}
	view_close(&v);
	settle_families(f, c.first);
	return c.result ? c.result : budget_check(&f->budget, e);
}

static int collect_all(struct finder *f, enum names_source *sources, struct err *e)
{
	const struct modules *m = f->in->modules;
	int r = 0;

	for (uint32_t i = 0; i < m->count && !r; i++) {
		const struct elf_module *module = &m->list[i];
		/* The loader's own malloc serves itself; musl's loader is the C library. */
		if (!module->is_vdso && (!module->is_loader || module == f->in->libc->module))
			r = collect(f, i, &sources[i], e);
	}
	if (f->out.function_count)
		qsort(f->out.functions, f->out.function_count, sizeof *f->out.functions, by_place);
	return r ?: make_index(f, e);
}

/* ---- examining ---- */

static int examine_module(struct finder *f, uint32_t module, struct err *e)
{
	struct module_view v;

	view_open(&v, f, module);
	view_read_jumps(&v, f);
	int r = budget_check(&f->budget, e);
	r = r ?: allocator_layers_find(f, &v, e);
	r = r ?: allocator_callers_find(f, &v, e);
	r = r ?: allocator_registers_find(f, &v, e);
	r = r ?: allocator_entries_find(f, &v, e);
	view_close(&v);
	return r;
}

/* Memory that does not come from another listed function. */
static bool is_own_work(const struct allocator_function *fn)
{
	return fn->like.shape != SHAPE_FREE && fn->like.shape != SHAPE_RESIZE &&
	       (fn->layer == LAYER_LOWEST || fn->layer == LAYER_UNKNOWN);
}

/* GOT entries that lead to functions of the allocator. */
static void count_entries(struct finder *f, struct allocator *a)
{
	const struct got_plan *plans = f->in->plans;
	uint32_t last = UINT32_MAX; /* they are sorted by module */

	for (size_t i = 0; i < plans->entry_count; i++) {
		struct allocator_function *fn = finder_function(f, plans->entries[i].original);
		if (!fn || fn < &f->out.functions[a->first] || fn >= &f->out.functions[a->first + a->count])
			continue;
		fn->got_entries++;
		a->got_entries++;
		a->got_modules += plans->entries[i].module != last;
		last = plans->entries[i].module;
	}
}

static int add_allocator(struct finder *f, size_t first, size_t count, enum names_source source, struct err *e)
{
	const struct allocator_function *fn = &f->out.functions[first];
	struct allocator a = { .module = fn->module, .family = fn->like.family, .source = source };
	bool own_work = false;
	struct module_view v;

	a.first = first;
	a.count = count;
	for (size_t i = 0; i < count; i++) {
		own_work |= is_own_work(&fn[i]);
		a.direct_calls += fn[i].direct_calls;
		a.address_taken += fn[i].address_taken;
		a.in_force |= fn[i].address == f->in->libc->malloc;
	}
	if (!own_work && a.family != FAMILY_GIVEN)
		return 0;
	count_entries(f, &a);
	view_open(&v, f, fn->module);
	view_read_jumps(&v, f);
	int r = allocator_identify(f, &v, &a, e);
	r = r ?: allocator_quiet_find(f, &v, &a, e);
	view_close(&v);
	if (r)
		return r;
	if (!grow_list(f->out.list, f->out.count))
		return err_set(e, ENOMEM, "no memory for the list of allocators");
	f->out.list[f->out.count++] = a;
	return 0;
}

static int examine(struct finder *f, const enum names_source *sources, struct err *e)
{
	const struct allocator_function *list = f->out.functions;
	int r = 0;

	for (size_t i = 0; i < f->out.function_count && !r; i++)
		if (i == 0 || list[i].module != list[i - 1].module)
			r = examine_module(f, list[i].module, e);
	for (size_t i = 0, next; i < f->out.function_count && !r; i = next) {
		for (next = i + 1; next < f->out.function_count && list[next].module == list[i].module &&
		                   list[next].like.family == list[i].like.family;)
			next++;
		r = add_allocator(f, i, next - i, sources[list[i].module], e);
	}
	return r;
}

int allocators_find(struct allocators *a, const struct allocators_input *in, struct err *e)
{
	struct finder f = { .in = in };
	AUTO_FREE enum names_source *sources = calloc(in->modules->count + 1, sizeof *sources);

	if (!sources)
		return err_set(e, ENOMEM, "no memory for the list of allocators");
	budget_start(&f.budget, BUDGET_PLAN_BYTES, BUDGET_PLAN_WORK);
	f.memory = target_memory_charged(in->memory, &f.budget);
	f.scope = scope_new(in->modules, &f.budget);
	if (!f.scope)
		return err_set(e, ENOMEM, "no memory for the list of modules");
	int r = collect_all(&f, sources, e);
	r = r ?: examine(&f, sources, e);
	scope_free(f.scope);
	free(f.by_address);
	if (r)
		allocators_free(&f.out);
	else
		*a = f.out;
	return r;
}

void allocators_free(struct allocators *a)
{
	free(a->functions);
	free(a->list);
	*a = (struct allocators){ 0 };
}

int allocator_functions_look(struct allocator_function *list, size_t count, const struct allocators_input *in,
                             struct err *e)
{
	struct finder f = { .in = in, .out = { .functions = list, .function_count = count } };
	struct module_view v;

	budget_start(&f.budget, BUDGET_PLAN_BYTES, BUDGET_PLAN_WORK);
	f.memory = target_memory_charged(in->memory, &f.budget);
	int r = make_index(&f, e);
	if (r)
		return r;
	view_open(&v, &f, list->module);
	for (size_t i = 0; i < count; i++)
		list[i].bytes = function_table_bytes(&v.table, list[i].address, 0);
	r = allocator_callers_find(&f, &v, e);
	r = r ?: allocator_registers_find(&f, &v, e);
	r = r ?: allocator_entries_find(&f, &v, e);
	view_close(&v);
	free(f.by_address);
	return r;
}

size_t allocator_hookable(const struct allocators *a, const struct allocator *of, size_t *all)
{
	size_t count = 0;

	*all = 0;
	for (size_t i = of->first; i < of->first + of->count; i++) {
		if (a->functions[i].layer == LAYER_WRAPPER)
			continue;
		++*all;
		count += !a->functions[i].entry_refusal[0];
	}
	return count;
}
