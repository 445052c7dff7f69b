/* SPDX-License-Identifier: MIT */
/*
 * Which definitions are hooked? An allocation must be counted once although allocation functions call each
 * other, and without a flag at run time. So the machine code of each definition is searched for calls through
 * GOT entries of its own module:
 *
 *   operator new → malloc        the inner call is counted, the wrapper is left alone ("routed")
 *   realloc → malloc + free      only some paths do so (others resize in place): realloc is hooked, and the
 *                                GOT entry of malloc in that module is left alone
 *   inside an allocator library  wrappers have fast paths of their own and call malloc only on the slow ones:
 *                                they are hooked, and the library's GOT entries that lead back into it are left alone
 *
 * A wrapper may reach the GOT entry by a direct call of another listed function in its module (operator new[] →
 * operator new): such calls are followed too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "got/got_planner.h"
#include "base/grow.h"

#define BODY_MAX 65536u
#define DIRECT_DEPTH_MAX 4u
#define ROUTES_MAX 4096u

/* A listed function that is in a module. */
struct local_definition {
	uint64_t address;
	uint64_t bytes;
	uint32_t hook;
};

struct local_definitions {
	struct local_definition list[4 * HOOK_COUNT];
	size_t count;
};

struct inquiry {
	struct planner *p;
	const struct code_scan *scan;
	uint32_t module;
	uint32_t hook; /* whose body is read */
	uint64_t original;
	const struct local_definitions *near;
	unsigned depth;
	const struct candidate *allocates; /* out: through which GOT entries it passes on */
	const struct candidate *frees;
	const struct candidate *reallocates;
	struct candidate *called[16]; /* out: GOT entries of allocating functions that it calls */
	size_t called_count;
};

static void add_definition(struct local_definitions *d, uint32_t hook, uint64_t address, uint64_t bytes)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->list[i].address == address)
			return;
	if (d->count < sizeof d->list / sizeof d->list[0])
		d->list[d->count++] = (struct local_definition){ address, bytes, hook };
}

static bool add_symtab_definition(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	uint32_t hook = type == STT_FUNC ? listed_hook_by_symbol(name) : HOOK_COUNT;

	if (hook < HOOK_COUNT)
		add_definition(context, hook, address, bytes);
	return true;
}

static void find_definitions(struct planner *p, uint32_t module, struct local_definitions *d)
{
	const struct elf_module *m = &p->m->list[module];

	d->count = 0;
	for (uint32_t hook = 0; hook < HOOK_COUNT; hook++) {
		struct elf_symbol s;
		if (elf_module_find(m, listed_hook_symbol(hook), NULL, &s) && s.function && !s.ifunc)
			add_definition(d, hook, s.address, s.bytes);
	}
	module_file_symbols(planner_file(p, module), add_symtab_definition, d);
}

static bool counts_memory(uint32_t hook)
{
	return listed_hook_group(hook) == GROUP_MALLOC || listed_hook_group(hook) == GROUP_JEMALLOC;
}

static void on_entry(void *context, uint32_t entry)
{
	struct inquiry *q = context;
	struct candidate *c = planner_candidate(q->p, q->module, q->scan->entries[entry].address);

	if (!c || c->excluded || !counts_memory(c->plan.hook) ||
	    (c->plan.hook == q->hook && c->plan.original == q->original))
		return;
	if (listed_hook_shape(c->plan.hook) == SHAPE_REALLOC && !q->reallocates)
		q->reallocates = c;
	else if (listed_hook_frees(c->plan.hook) && !q->frees)
		q->frees = c;
	else if (listed_hook_allocates(c->plan.hook) && !q->allocates)
		q->allocates = c;
	if (!listed_hook_frees(c->plan.hook) && q->called_count < sizeof q->called / sizeof q->called[0])
		q->called[q->called_count++] = c;
}

static void read_body(struct inquiry *q, uint64_t address, uint64_t bytes);

static void on_branch(void *context, uint64_t destination)
{
	struct inquiry *q = context;

	for (size_t i = 0; i < q->near->count; i++) {
		const struct local_definition *d = &q->near->list[i];
		if (d->address == destination && d->address != q->original && q->depth < DIRECT_DEPTH_MAX) {
			q->depth++;
			read_body(q, d->address, d->bytes);
			q->depth--;
			return;
		}
	}
}

static void read_body(struct inquiry *q, uint64_t address, uint64_t bytes)
{
	if (bytes == 0 || bytes > BODY_MAX || !elf_module_holds(&q->p->m->list[q->module], address, bytes, PF_X))
		return;
	AUTO_FREE uint8_t *code = malloc(bytes);
	if (!code || module_file_read(planner_file(q->p, q->module), address, code, bytes, ERR_IGNORED))
		return;
	code_scan_calls(q->scan, code, bytes, address, on_entry, q);
	code_scan_branches(code, bytes, address, on_branch, q);
}

/* To whom does the definition pass on, for good? */
static const struct candidate *passes_on(const struct inquiry *q)
{
	switch (listed_hook_shape(q->hook)) {
	case SHAPE_ALLOC:
	case SHAPE_OUT: return q->allocates ? q->allocates : q->reallocates;
	case SHAPE_REALLOC: return q->reallocates;
	case SHAPE_FREE: return q->frees;
	default: return NULL;
	}
}

/* The C library, or its copy in another namespace. */
static bool is_libc(const struct planner *p, const struct elf_module *m)
{
	const struct elf_module *libc = p->libc->module;

	return m == libc ||
	       (m->namespace_id != libc->namespace_id && libc->soname[0] && !strcmp(m->soname, libc->soname));
}

/* An allocator that is not the C library's: its wrappers are more than wrappers. */
static bool is_allocator_library(const struct planner *p, uint32_t module)
{
	const struct elf_module *m = &p->m->list[module];
	struct elf_symbol s;

	return !is_libc(p, m) && elf_module_find(m, "malloc", NULL, &s);
}

static bool inquire(struct planner *p, const struct entry_route *route, uint64_t bytes, struct inquiry *q,
                    const struct local_definitions *near)
{
	const struct code_scan *scan = planner_scan(p, route->definer);

	*q = (struct inquiry){ .p = p,
		               .scan = scan,
		               .module = route->definer,
		               .hook = route->hook,
		               .original = route->original,
		               .near = near };
	if (!scan || scan->entry_count == 0)
		return false;
	read_body(q, route->original, bytes);
	return true;
}

static struct entry_route *find_route(struct planner *p, uint32_t hook, uint64_t original)
{
	for (size_t i = 0; i < p->out.route_count; i++)
		if (p->out.routes[i].hook == hook && p->out.routes[i].original == original)
			return &p->out.routes[i];
	return NULL;
}

static int collect_routes(struct planner *p, struct err *e)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct candidate *c = &p->candidates[i];
		struct entry_route *r = find_route(p, c->plan.hook, c->plan.original);

		if (!r) {
			if (p->out.route_count == ROUTES_MAX)
				return err_set(e, E2BIG, "the program uses more than %u different allocation functions",
				               ROUTES_MAX);
			if (!grow_list(p->out.routes, p->out.route_count))
				return err_set(e, ENOMEM, "no memory for the plan");
			r = &p->out.routes[p->out.route_count++];
			*r = (struct entry_route){ c->plan.hook, c->plan.original, c->definer, 0, true, 0 };
		}
		r->entries++;
	}
	return 0;
}

static uint64_t body_bytes(const struct planner *p, const struct entry_route *r)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->candidates[i].plan.hook == r->hook && p->candidates[i].plan.original == r->original &&
		    p->candidates[i].definer_bytes)
			return p->candidates[i].definer_bytes;
	return 0;
}

static int exclude(struct planner *p, struct candidate *c, uint32_t because_of, struct err *e)
{
	c->excluded = true;
	if (because_of == HOOK_COUNT)
		return 0;
	const struct plan_note note = {
		.kind = NOTE_OWN_CALLS, .module = c->plan.module, .hook = c->plan.hook, .because_of = because_of
	};
	return planner_note(p, &note, e);
}

/* Marks GOT entries of the C library that its own realloc uses on some of its paths only. */
static int exclude_mixed(struct planner *p, const struct entry_route *r, const struct inquiry *q, struct err *e)
{
	bool mixed = listed_hook_shape(r->hook) == SHAPE_REALLOC && !q->reallocates;
	int err = 0;

	for (size_t i = 0; mixed && i < q->called_count && !err; i++) {
		struct candidate *c = q->called[i];
		if (!c->excluded && !c->patched && c->definer == r->definer)
			err = exclude(p, c, r->hook, e);
	}
	return err;
}

/*
 * In an allocator library the slow paths of the wrappers call the library's own functions from anywhere, so none of its
 * GOT entries that lead back into it and allocate is patched. GOT entries of free may be: a free that is seen twice is
 * harmless.
 */
static int exclude_inside_allocators(struct planner *p, struct err *e)
{
	int err = 0;

	for (size_t i = 0; i < p->count && !err; i++) {
		struct candidate *c = &p->candidates[i];
		if (!c->patched && c->definer == c->plan.module && counts_memory(c->plan.hook) &&
		    !listed_hook_frees(c->plan.hook) && is_allocator_library(p, c->definer))
			err = exclude(p, c, HOOK_COUNT, e);
	}
	return err;
}

/* One definition: first pass excludes GOT entries, second decides. next[] gets the route that it passes on to. */
static int consider(struct planner *p, size_t index, bool decide, const struct local_definitions *near, size_t *next,
                    struct err *e)
{
	struct entry_route *r = &p->out.routes[index];
	struct inquiry q;

	if (!inquire(p, r, body_bytes(p, r), &q, near))
		return 0;
	if (!decide)
		return exclude_mixed(p, r, &q, e);
	const struct candidate *c = passes_on(&q);
	/* A free that is seen twice is harmless; one that is missed is not. */
	if (!c || is_allocator_library(p, r->definer))
		return 0;
	const struct entry_route *to = find_route(p, c->plan.hook, c->plan.original);
	r->hooked = false;
	r->via = c->plan.hook;
	next[index] = (size_t)(to - p->out.routes);
	return 0;
}

/* A circle of wrappers would lose everything: its members are hooked. */
static void break_circles(struct planner *p, const size_t *next)
{
	for (size_t i = 0; i < p->out.route_count; i++) {
		size_t at = i, steps = 0;

		while (!p->out.routes[at].hooked && steps++ <= p->out.route_count)
			at = next[at];
		if (!p->out.routes[at].hooked)
			p->out.routes[i].hooked = true;
	}
}

int planner_routes(struct planner *p, struct err *e)
{
	int r = collect_routes(p, e);
	AUTO_FREE struct local_definitions *near = calloc(1, sizeof *near);
	AUTO_FREE size_t *next = calloc(p->out.route_count + 1, sizeof *next);

	if (r)
		return r;
	if (!near || !next)
		return err_set(e, ENOMEM, "no memory for the plan");
	r = exclude_inside_allocators(p, e);
	if (r)
		return r;
	for (unsigned pass = 0; pass < 2; pass++) {
		uint32_t prepared = UINT32_MAX;

		for (size_t i = 0; i < p->out.route_count; i++) {
			uint32_t definer = p->out.routes[i].definer;

			if (definer == UINT32_MAX || !counts_memory(p->out.routes[i].hook))
				continue;
			if (definer != prepared)
				find_definitions(p, definer, near);
			prepared = definer;
			r = consider(p, i, pass == 1, near, next, e);
			if (r)
				return r;
		}
	}
	break_circles(p, next);
	return 0;
}
