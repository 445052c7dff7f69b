/* SPDX-License-Identifier: MIT */
#include "census/reach/reach_paths.h"

#include <stdlib.h>

#include "base/grow.h"

/* The first index from which on parents are at least so large. */
static uint32_t first_of(const struct reach_paths *p, size_t count, uint64_t parent)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (p->parents[middle] < parent)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)low;
}

void reach_paths_children(const struct reach_paths *p, size_t count, uint32_t *first, uint32_t *end)
{
	const uint32_t from = first_of(p, count, 2 * (*first + 1ull)), until = first_of(p, count, 2ull * *end + 1);

	*first = from;
	*end = until;
}

bool reach_paths_parent(const struct reach_paths *p, uint32_t index, uint32_t *parent)
{
	*parent = p->parents[index] / 2 - 1;
	return p->parents[index] % 2 == 0;
}

int reach_paths_add(struct reach_paths *p, uint32_t index, uint32_t parent, struct err *e)
{
	if (!grow_list(p->parents, index))
		return err_set(e, ENOMEM, "no memory for who leads to its blocks");
	p->parents[index] = 2 * (parent + 1);
	return 0;
}

int reach_paths_add_root(struct reach_paths *p, uint32_t index, uint64_t address, struct err *e)
{
	if (!grow_list(p->parents, index) || !grow_list(p->roots, p->root_count))
		return err_set(e, ENOMEM, "no memory for who leads to its blocks");
	p->roots[p->root_count++] = (struct reach_root){ index, address };
	p->parents[index] = 2 * p->pass_start + 1;
	return 0;
}

void reach_paths_free(struct reach_paths *p)
{
	free(p->parents);
	free(p->roots);
	*p = (struct reach_paths){ 0 };
}
