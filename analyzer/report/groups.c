/* SPDX-License-Identifier: MIT */
#include "groups.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

#define ROWS_AHEAD 32u /* whose places are asked for together */

static struct group *group_of(struct groups *g, uint32_t image, const char *name)
{
	uint64_t hash = map_mix(image + 1u);
	const uint32_t *known;

	for (const char *s = name; *s; s++)
		hash = map_mix(hash ^ (unsigned char)*s);
	while ((known = map_find(&g->group_of, hash))) {
		if (g->list[*known].image == image && !strcmp(g->list[*known].name, name))
			return &g->list[*known];
		hash++;
	}
	if (!grow_list(g->list, g->count))
		return NULL;
	struct group *group = &g->list[g->count];
	*group = (struct group){ .name = strdup(name), .image = image };
	if (!group->name)
		return NULL;
	if (map_put(&g->group_of, hash, (uint32_t)g->count)) {
		free(group->name);
		return NULL;
	}
	g->count++;
	return group;
}

static int add_row(struct groups *g, uint32_t image, const char *name, const struct report_row *row, size_t number,
                   bool first)
{
	struct group *group = group_of(g, image, name);

	if (!group)
		return -ENOMEM;
	bool again = group->last_row == number + 1;
	for (int f = 0; f < FIGURE_COUNT; f++) {
		if (first)
			estimate_merge(&group->exclusive[f], &row->sum[f]);
		if (!again)
			estimate_merge(&group->inclusive[f], &row->sum[f]);
	}
	if (first)
		slack_merge(&group->slack_exclusive, &row->slack);
	if (!again)
		slack_merge(&group->slack_inclusive, &row->slack);
	group->lost_live_exclusive += first ? row->lost_live : 0;
	group->lost_live_inclusive += again ? 0 : row->lost_live;
	group->last_row = number + 1;
	return 0;
}

static int add_functions(struct groups *g, struct symbols *symbols, const struct report_row *row, size_t number)
{
	static const struct location nothing;

	for (uint32_t i = 0; i < row->frame_count; i++) {
		const struct location *list = &nothing;
		size_t n = 1;
		char offset[32];
		if (symbols)
			list = symbols_find(symbols, row->frames[i], &n);
		snprintf(offset, sizeof offset, "%s0x%" PRIx64, PLACE_IMAGE(row->frames[i]) ? "+" : "",
		         PLACE_OFFSET(row->frames[i]));
		for (size_t k = 0; k < n; k++)
			if (add_row(g, PLACE_IMAGE(row->frames[i]), list[k].function ? list[k].function : offset, row,
			            number, !i && !k))
				return -ENOMEM;
	}
	return 0;
}

static int add_modules(struct groups *g, const struct images *images, const struct report_row *row, size_t number)
{
	for (uint32_t i = 0; i < row->frame_count; i++) {
		uint32_t image = PLACE_IMAGE(row->frames[i]);
		const char *path = image ? images->list[image].path : NULL;
		if (add_row(g, image, path ? path : "(no module)", row, number, !i))
			return -ENOMEM;
	}
	return 0;
}

static enum report_figure sort_figure;

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a;
	const struct group *y = b;
	double d = y->inclusive[sort_figure].value - x->inclusive[sort_figure].value;

	if (d == 0)
		d = y->exclusive[sort_figure].value - x->exclusive[sort_figure].value;
	if (d != 0)
		return d > 0 ? 1 : -1;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->tid > y->tid) - (x->tid < y->tid);
}

void groups_sort(struct groups *g, enum report_figure sort)
{
	sort_figure = sort;
	if (g->count)
		qsort(g->list, g->count, sizeof *g->list, compare_groups);
}

int groups_make(struct groups *g, const struct rows *rows, const struct images *images, struct symbols *symbols,
                enum group_by by, enum report_figure sort, struct progress *progress)
{
	*g = (struct groups){ 0 };
	for (size_t i = 0; i < rows->count; i++) {
		const struct report_row *row = &rows->list[i];
		progress_at(progress, "looking up functions", i, rows->count);
		for (size_t k = i;
		     symbols && by == BY_FUNCTION && i % ROWS_AHEAD == 0 && k < rows->count && k < i + ROWS_AHEAD; k++)
			symbols_want(symbols, rows->list[k].frames, rows->list[k].frame_count);
		int s = row->unknown || !row->frame_count ? add_row(g, 0, "(stack not known)", row, i, true)
		        : by == BY_FUNCTION               ? add_functions(g, symbols, row, i)
		                                          : add_modules(g, images, row, i);
		if (s)
			return s;
	}
	groups_sort(g, sort);
	return 0;
}

/* A new one for each thread of each session, until there are too many. */
static struct group *thread_group(struct groups *g, const struct thread_sum *thread, int32_t pid)
{
	bool others = thread->others || g->count >= THREADS_MAX;

	for (size_t i = g->count; others && i-- > 0;)
		if (g->list[i].others)
			return &g->list[i];
	if (!grow_list(g->list, g->count))
		return NULL;
	struct group *group = &g->list[g->count];
	*group = (struct group){ .name = strdup(others ? "" : thread->name),
		                 .tid = others ? 0 : thread->tid,
		                 .pid = pid,
		                 .others = others };
	return group->name ? (g->count++, group) : NULL;
}

int groups_add_threads(struct groups *g, const struct threads *threads, int32_t pid, uint64_t rate)
{
	for (size_t i = 0; i < threads->count; i++) {
		const struct thread_sum *thread = &threads->list[i];
		struct group *group = thread_group(g, thread, pid);
		if (!group)
			return -ENOMEM;
		estimate_merge(&group->inclusive[FIGURE_LIVE_BYTES], &thread->sum[FIGURE_LIVE_BYTES]);
		estimate_merge(&group->inclusive[FIGURE_LIVE_COUNT], &thread->sum[FIGURE_LIVE_COUNT]);
		estimate_expect(&group->inclusive[FIGURE_LIVE_BYTES], rate > 1 ? (double)rate : 0);
		estimate_hide(&group->inclusive[FIGURE_LIVE_COUNT], rate);
		slack_merge(&group->slack_inclusive, &thread->slack);
	}
	return 0;
}

void groups_done(struct groups *g)
{
	for (size_t i = 0; i < g->count; i++)
		free(g->list[i].name);
	free(g->list);
	map_done(&g->group_of);
	*g = (struct groups){ 0 };
}
