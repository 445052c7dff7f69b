/* SPDX-License-Identifier: MIT */
#include "census/pages/extents.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/sorted.h"
#include "base/order.h"

int extents_add(struct extents *x, const struct extent *extent, struct err *e)
{
	if (!grow_list(x->list, x->count))
		return err_set(e, ENOMEM, "no memory for the parts of its heap");
	x->list[x->count++] = *extent;
	return 0;
}

int extents_extend(struct extents *x, const struct extent *extent, struct err *e)
{
	struct extent *last = x->count ? &x->list[x->count - 1] : NULL;

	if (!last || last->kind != extent->kind || last->end != extent->start)
		return extents_add(x, extent, e);
	last->end = extent->end;
	return 0;
}

ORDER_BY(compare, struct extent, start);

void extents_sort(struct extents *x)
{
	size_t kept = 0;

	if (x->count)
		qsort(x->list, x->count, sizeof *x->list, compare);
	for (size_t i = 0; i < x->count; i++)
		if (x->list[i].start < x->list[i].end && (!kept || x->list[kept - 1].end <= x->list[i].start))
			x->list[kept++] = x->list[i];
	x->count = kept;
}

size_t extents_from(const struct extents *x, uint64_t address)
{
	return SORTED_UP_TO(x->list, x->count, end, address);
}

void extents_free(struct extents *x)
{
	free(x->list);
	*x = (struct extents){ 0 };
}
