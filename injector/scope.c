/* SPDX-License-Identifier: MIT */
/*
 * The loader's lists of scopes are private to it. What is public is the order of the link maps: the program,
 * preloaded libraries, then everything that these need, breadth first; what dlopen brought comes behind. So
 * the global scope is the list up to the last module that the program needs, directly or not.
 */
#include "scope.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

/* Does the DT_NEEDED name mean this module? */
static bool answers_to(const struct elf_module *m, const char *name)
{
	const char *base = strrchr(name, '/');

	return !strcmp(m->soname, name) || !strcmp(m->path, name) ||
	       !strcmp(elf_module_name(m), base ? base + 1 : name);
}

/*
 * Fills order[] with the indexes of root and all that it needs, breadth first; returns how many. seen[] is
 * zeroed, m->count long.
 */
static size_t needed_closure(const struct modules *m, size_t root, size_t *order, bool *seen, struct budget *budget)
{
	size_t count = 0;
	struct err ignored;

	order[count++] = root;
	seen[root] = true;
	for (size_t next = 0; next < count; next++) {
		const struct elf_module *user = &m->list[order[next]];

		for (size_t n = 0; n < user->needed_count; n++) {
			const char *name = elf_module_string(user, user->needed[n], PATH_MAX);

			for (size_t i = 0; name && i < m->count; i++) {
				if (budget_work(budget, BUDGET_COMPARE, &ignored) < 0)
					return count;
				if (seen[i] || m->list[i].space != user->space || !answers_to(&m->list[i], name))
					continue;
				seen[i] = true;
				order[count++] = i;
				break;
			}
		}
	}
	return count;
}

/* The global scope is a prefix of the namespace's list: the index behind its last module. */
static size_t global_end(const struct modules *m, uint32_t space, size_t *order, bool *seen, struct budget *budget)
{
	size_t end = 0;

	for (size_t i = 0; i < m->count; i++) {
		if (m->list[i].space != space)
			continue;
		size_t count = needed_closure(m, i, order, seen, budget);
		for (size_t k = 0; k < count; k++)
			if (order[k] >= end)
				end = order[k] + 1;
		break;
	}
	return end;
}

static const struct elf_module *find_in(const struct elf_module *d, const char *name, const char *version,
                                        struct elf_symbol *symbol)
{
	return elf_module_find(d, name, version, symbol) ? d : NULL;
}

const struct elf_module *scope_find(const struct modules *m, const struct elf_module *from, const char *name,
                                    const char *version, struct elf_symbol *symbol, struct budget *budget)
{
	AUTO_FREE size_t *order = calloc(m->count + 1, sizeof *order);
	AUTO_FREE bool *seen = calloc(m->count + 1, sizeof *seen);
	const struct elf_module *found = NULL;

	struct err ignored;

	if (!order || !seen || m->count == 0 || budget_work(budget, 2 * BUDGET_COMPARE * m->count, &ignored) < 0)
		return NULL;
	if (!from)
		from = modules_main(m) ? modules_main(m) : m->list;
	if (from->symbolic && (found = find_in(from, name, version, symbol)))
		return found;
	size_t end = global_end(m, from->space, order, seen, budget);
	for (size_t i = 0; i < end && !found; i++)
		if (m->list[i].space == from->space)
			found = find_in(&m->list[i], name, version, symbol);
	if (found)
		return found;
	memset(seen, 0, m->count * sizeof *seen);
	size_t count = needed_closure(m, (size_t)(from - m->list), order, seen, budget);
	for (size_t i = 0; i < count && !found; i++)
		found = find_in(&m->list[order[i]], name, version, symbol);
	for (size_t i = end; i < m->count && !found; i++)
		if (m->list[i].space == from->space)
			found = find_in(&m->list[i], name, version, symbol);
	return found;
}
