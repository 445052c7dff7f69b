/* SPDX-License-Identifier: MIT */
#include "input/memory/usage.h"

#include <stdlib.h>

#include "base/grow.h"

#define POINTS_MAX 100000u /* memattach makes fewer */

struct reading {
	struct usage *usage;
	struct dump *dump;
	uint64_t start_ns;
};

static int on_usage(void *arg, const struct dump_usage *usage)
{
	struct reading *r = arg;
	struct usage *u = r->usage;
	const uint64_t at = dump_stamp_realtime_ns(r->dump, usage->stamp);
	const double seconds = at > r->start_ns ? (double)(at - r->start_ns) / 1e9 : 0;

	if (u->count >= POINTS_MAX || (u->count && seconds <= u->list[u->count - 1].seconds))
		return 0;
	if (!grow_list(u->list, u->count))
		return -ENOMEM;
	struct usage_point *point = &u->list[u->count++];
	*point = (struct usage_point){ .seconds = seconds,
		                       .is_look = usage->flags & DUMP_USAGE_LOOK,
		                       .rss = (double)usage->rss,
		                       .swapped = (double)usage->swapped };
	for (int k = 0; k < DUMP_MEMORY_KINDS; k++)
		point->parts[k] = (double)usage->parts[k];
	return 0;
}

int usage_read(struct usage *usage, struct dump *dump)
{
	struct reading r = { usage, dump, dump_header(dump)->clock_start.realtime_ns };

	*usage = (struct usage){ 0 };
	return dump_each_usage(dump, on_usage, &r);
}

/* Of each group of points that follow each other one: the first look, or the first. */
bool usage_shows(const struct usage *u, size_t i, size_t most)
{
	const size_t group = most ? (u->count + most - 1) / most : u->count, from = group ? i - i % group : i;
	size_t shown = from;

	for (size_t k = from; k < from + group && k < u->count; k++)
		if (u->list[k].is_look) {
			shown = k;
			break;
		}
	return shown == i;
}

void usage_done(struct usage *usage)
{
	free(usage->list);
	*usage = (struct usage){ 0 };
}
