/* SPDX-License-Identifier: MIT */
/*
 * The loader's lists of scopes are private to it. What is public is the order of the link maps: the program,
 * preloaded libraries, then everything that these need, breadth first; what dlopen brought comes after. So
 * the global scope is the list up to the last module that the program needs, directly or not.
 */
#include "elf/scope.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sorted.h"
#include "base/order.h"

struct name {
	uint64_t hash;
	uint32_t module;
};

struct scope {
	const struct modules *m;
	struct budget *budget;
	struct name *names; /* by hash, then module: the names by which a module may be needed */
	size_t name_count;
	size_t *order; /* of needed_closure */
	bool *seen;
	size_t *near; /* the closure of near_of, kept because one module asks often */
	size_t near_count;
	const struct elf_module *near_of;
	size_t global_end; /* of global_namespace */
	uint32_t global_namespace;
	bool have_global;
};

/* ---- names ---- */

/* Does the DT_NEEDED name mean this module? */
static bool answers_to(const struct elf_module *m, const char *name)
{
	const char *base = strrchr(name, '/');

	return !strcmp(m->soname, name) || !strcmp(m->path, name) ||
	       !strcmp(elf_module_name(m), base ? base + 1 : name);
}

/* FNV-1a. */
static uint64_t hash_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	return h;
}

ORDER_BY_BOTH(by_hash, struct name, hash, module);

static void list_names(struct scope *s)
{
	for (uint32_t i = 0; i < s->m->count; i++) {
		const struct elf_module *m = &s->m->list[i];

		s->names[s->name_count++] = (struct name){ hash_of(m->soname), i };
		s->names[s->name_count++] = (struct name){ hash_of(m->path), i };
		s->names[s->name_count++] = (struct name){ hash_of(elf_module_name(m)), i };
	}
	qsort(s->names, s->name_count, sizeof *s->names, by_hash);
}

/* The first module of a namespace that is not seen yet and answers to name, among those with this hash; or m->count. */
static size_t first_with(const struct scope *s, uint64_t hash, uint32_t namespace_id, const char *name)
{
	size_t low = SORTED_BELOW(s->names, s->name_count, hash, hash);

	for (; low < s->name_count && s->names[low].hash == hash; low++) {
		size_t i = s->names[low].module;
		if (budget_work(s->budget, BUDGET_COMPARE, ERR_IGNORED) < 0)
			break;
		if (!s->seen[i] && s->m->list[i].namespace_id == namespace_id && answers_to(&s->m->list[i], name))
			return i;
	}
	return s->m->count;
}

static size_t find_needed(const struct scope *s, uint32_t namespace_id, const char *name)
{
	const char *slash = strrchr(name, '/');

	if (budget_work(s->budget, 4 * BUDGET_COMPARE + strlen(name), ERR_IGNORED) < 0)
		return s->m->count;
	size_t by_name = first_with(s, hash_of(name), namespace_id, name);
	size_t by_base = slash ? first_with(s, hash_of(slash + 1), namespace_id, name) : by_name;
	return by_base < by_name ? by_base : by_name;
}

/* ---- scopes ---- */

/* Fills order[] with the indexes of root and all that it needs, breadth first; returns how many. */
static size_t needed_closure(struct scope *s, size_t root)
{
	size_t count = 0;

	memset(s->seen, 0, s->m->count * sizeof *s->seen);
	s->order[count++] = root;
	s->seen[root] = true;
	for (size_t next = 0; next < count; next++) {
		const struct elf_module *user = &s->m->list[s->order[next]];

		for (size_t n = 0; n < user->needed_count; n++) {
			const char *name = elf_module_string(user, user->needed[n], PATH_MAX);
			size_t i = name ? find_needed(s, user->namespace_id, name) : s->m->count;
			if (i == s->m->count)
				continue;
			s->seen[i] = true;
			s->order[count++] = i;
		}
	}
	return count;
}

/* The global scope is a prefix of the namespace's list: the index after its last module. */
static size_t global_end(struct scope *s, uint32_t namespace_id)
{
	size_t end = 0;

	if (s->have_global && s->global_namespace == namespace_id)
		return s->global_end;
	for (size_t i = 0; i < s->m->count; i++) {
		if (s->m->list[i].namespace_id != namespace_id)
			continue;
		size_t count = needed_closure(s, i);
		for (size_t k = 0; k < count; k++)
			if (s->order[k] >= end)
				end = s->order[k] + 1;
		break;
	}
	s->global_end = end;
	s->global_namespace = namespace_id;
	s->have_global = true;
	return end;
}

static void look_near(struct scope *s, const struct elf_module *from)
{
	if (s->near_of == from)
		return;
	s->near_count = needed_closure(s, (size_t)(from - s->m->list));
	memcpy(s->near, s->order, s->near_count * sizeof *s->near);
	s->near_of = from;
}

struct scope *scope_new(const struct modules *m, struct budget *budget)
{
	struct scope *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->m = m;
	s->budget = budget;
	s->names = calloc(3 * m->count + 1, sizeof *s->names);
	s->order = calloc(m->count + 1, sizeof *s->order);
	s->near = calloc(m->count + 1, sizeof *s->near);
	s->seen = calloc(m->count + 1, sizeof *s->seen);
	if (!s->names || !s->order || !s->near || !s->seen) {
		scope_free(s);
		return NULL;
	}
	list_names(s);
	return s;
}

void scope_free(struct scope *s)
{
	if (!s)
		return;
	free(s->names);
	free(s->order);
	free(s->near);
	free(s->seen);
	free(s);
}

static const struct elf_module *find_in(const struct elf_module *d, const char *name, const char *version,
                                        struct elf_symbol *symbol)
{
	return elf_module_find(d, name, version, symbol) ? d : NULL;
}

const struct elf_module *scope_find(struct scope *s, const struct elf_module *from, const char *name,
                                    const char *version, struct elf_symbol *symbol)
{
	const struct modules *m = s->m;
	const struct elf_module *found = NULL;

	if (m->count == 0 || budget_work(s->budget, 2 * BUDGET_COMPARE * m->count, ERR_IGNORED) < 0)
		return NULL;
	if (!from)
		from = modules_main(m) ? modules_main(m) : m->list;
	if (from->symbolic && (found = find_in(from, name, version, symbol)))
		return found;
	size_t end = global_end(s, from->namespace_id);
	for (size_t i = 0; i < end && !found; i++)
		if (m->list[i].namespace_id == from->namespace_id)
			found = find_in(&m->list[i], name, version, symbol);
	if (found)
		return found;
	look_near(s, from);
	for (size_t i = 0; i < s->near_count && !found; i++)
		found = find_in(&m->list[s->near[i]], name, version, symbol);
	for (size_t i = end; i < m->count && !found; i++)
		if (m->list[i].namespace_id == from->namespace_id)
			found = find_in(&m->list[i], name, version, symbol);
	return found;
}

bool scope_stays(struct scope *s, const struct elf_module *module)
{
	const struct elf_module *program = modules_main(s->m);
	size_t asked = (size_t)(module - s->m->list), first = s->m->count;
	bool needed = false;

	if (!program || budget_check(s->budget, ERR_IGNORED) < 0)
		return false;
	size_t count = needed_closure(s, (size_t)(program - s->m->list));
	for (size_t i = 0; i < count; i++) {
		needed |= s->order[i] == asked;
		if (i && s->order[i] < first)
			first = s->order[i];
	}
	bool preloaded = module->namespace_id == program->namespace_id && count > 1 && asked < first;
	return (needed || preloaded) && budget_check(s->budget, ERR_IGNORED) == 0;
}
