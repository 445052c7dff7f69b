/* SPDX-License-Identifier: MIT */
#include "html/html_table.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "html/html_data.h"
#include "output/frame_name.h"
#include "output/group_title.h"

#define NUMBERS_BYTES 400u /* of a row: four numbers of each figure, twice */
#define NAME_TEXT 4400u

struct ranked_group {
	double weight; /* the largest part of a total that it has */
	const struct group *group;
};

/* The heaviest first, else as groups_sort has them. */
static int compare_ranked(const void *a, const void *b)
{
	const struct ranked_group *x = a;
	const struct ranked_group *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

static struct ranked_group *rank(const struct report *r, const struct groups *groups)
{
	struct ranked_group *list = calloc(groups->count + 1, sizeof *list);

	for (size_t i = 0; list && i < groups->count; i++) {
		list[i].group = &groups->list[i];
		for (int f = 0; f < FIGURE_COUNT; f++)
			if (r->total.sum[f].value > 0)
				list[i].weight = fmax(list[i].weight,
				                      groups->list[i].inclusive[f].value / r->total.sum[f].value);
	}
	if (list)
		qsort(list, groups->count, sizeof *list, compare_ranked);
	return list;
}

void html_figures(const struct report *r, const struct report_row *row, int figures, struct json *j)
{
	for (int f = 0; f < figures; f++) {
		struct estimate x = report_estimate(r, row, f);
		json_unsigned(j, NULL, row->sum[f].samples);
		json_estimate(j, NULL, round(x.value));
		json_estimate(j, NULL, floor(x.low));
		json_estimate(j, NULL, ceil(x.high));
	}
}

static bool owns(const struct group *g)
{
	for (int f = 0; f < FIGURE_COUNT; f++)
		if (g->exclusive[f].samples || g->exclusive[f].next > 0)
			return true;
	return false;
}

/* Functions without a name as frame_name_text has them. */
static const char *name_of(const struct report *r, const struct group *g, char text[NAME_TEXT])
{
	char module[NAME_MAX + 1];

	if (!g->image || strncmp(g->name, "+0x", 3))
		return g->name;
	image_short_name(&r->images.list[g->image], module, sizeof module);
	snprintf(text, NAME_TEXT, "%s%s", module, g->name);
	return text;
}

static int put_group(struct json *j, const struct report *r, const struct group *g, struct name_text *buffer)
{
	const struct report_row own = report_group(g, true), all = report_group(g, false);
	const char *path = g->image ? r->images.list[g->image].path : NULL;
	char text[NAME_TEXT];

	json_array_line(j, NULL);
	int s = html_put_name(j, name_of(r, g, text), buffer);
	if (path)
		s = s ?: html_put_name(j, path, buffer);
	else
		json_string(j, NULL, NULL);
	json_unsigned(j, NULL, owns(g));
	html_figures(r, &own, FIGURE_COUNT, j);
	html_figures(r, &all, FIGURE_COUNT, j);
	json_array_end(j);
	return s;
}

/* How many of them are shown. */
static size_t fit(const struct report *r, const struct ranked_group *list, size_t count, size_t limit)
{
	char text[NAME_TEXT];
	size_t bytes = 0, n = 0;

	for (; n < count && n < HTML_TABLE_ROWS; n++) {
		const struct group *g = list[n].group;
		const char *path = r->images.list[g->image].path;
		bytes += NUMBERS_BYTES + html_name_bytes(name_of(r, g, text)) + (path ? html_name_bytes(path) : 0);
		if (bytes > limit)
			break;
	}
	return n;
}

static void put_rest(struct json *j, const struct ranked_group *list, size_t count)
{
	json_unsigned(j, "more", count);
	json_estimate(j, "most", count ? list->weight : 0);
	json_array_line(j, "rest");
	for (int f = 0; f < FIGURE_COUNT; f++) {
		double own = 0;
		for (size_t i = 0; i < count; i++)
			own += list[i].group->exclusive[f].value;
		json_estimate(j, NULL, round(own));
	}
	json_array_end(j);
}

static int put_groups(struct json *j, const struct report *r, const struct groups *groups, size_t bytes)
{
	AUTO_FREE struct ranked_group *list = rank(r, groups);
	struct name_text buffer = { 0 };
	int s = list ? 0 : -ENOMEM;
	size_t shown = list ? fit(r, list, groups->count, bytes) : 0;

	json_object(j, group_by_name(r->options.by));
	json_array(j, "rows");
	for (size_t i = 0; !s && i < shown; i++)
		s = put_group(j, r, list[i].group, &buffer);
	json_array_end(j);
	if (!s)
		put_rest(j, list + shown, groups->count - shown);
	json_object_end(j);
	frame_name_done(&buffer);
	return s;
}

/* Threads, sizes, lifetimes, types or holders. */
static int put_sample_groups(struct json *j, const struct report *r, const struct groups *groups, size_t bytes)
{
	const bool live_only = r->options.by == BY_THREAD || groups_label(r->options.by) != LABEL_KINDS;
	const int figures = live_only ? 2 : FIGURE_COUNT;
	struct name_text buffer = { 0 };
	char title[GROUP_TITLE_TEXT];
	size_t i = 0, used = 0;
	int s = 0;

	json_object(j, group_by_name(r->options.by));
	json_array(j, "rows");
	for (; !s && i < groups->count && i < HTML_TABLE_ROWS; i++) {
		const struct report_row row = report_thread(r, &groups->list[i]);
		used += NUMBERS_BYTES / 2 + html_name_bytes(group_title(r, &groups->list[i], title));
		if (used > bytes)
			break;
		json_array_line(j, NULL);
		s = html_put_name(j, title, &buffer);
		html_figures(r, &row, figures, j);
		json_array_end(j);
	}
	json_array_end(j);
	json_unsigned(j, "more", groups->count - i);
	json_object_end(j);
	frame_name_done(&buffer);
	return s;
}

static int put_by(struct json *j, const struct report *r, size_t bytes)
{
	struct groups groups = { 0 };
	int s;

	if (r->options.by == BY_THREAD)
		return put_sample_groups(j, r, &r->threads, bytes);
	if (groups_label(r->options.by) != LABEL_KINDS)
		return put_sample_groups(j, r, &r->labels[groups_label(r->options.by)], bytes);
	if (groups_of_samples(r->options.by)) {
		s = groups_add_classes(&groups, &r->classes, r->options.by, &r->total);
		s = s ?: put_sample_groups(j, r, &groups, bytes);
	} else {
		s = groups_make(&groups, r);
		s = s ?: put_groups(j, r, &groups, bytes);
	}
	groups_done(&groups);
	return s;
}

int html_table(const struct report *r, size_t bytes, struct json *j)
{
	static const enum group_by all[] = { BY_FUNCTION, BY_FILE,     BY_MODULE, BY_THREAD,
		                             BY_SIZE,     BY_LIFETIME, BY_TYPE,   BY_HOLDER };
	int s = 0;

	if (report_compares(r))
		return 0;
	json_object(j, "table");
	for (size_t i = 0; !s && i < sizeof all / sizeof all[0]; i++) {
		struct report by = *r;
		by.options.by = all[i];
		if (!groups_of_samples(all[i]) || r->options.sample_groups)
			s = put_by(j, &by, bytes);
	}
	json_object_end(j);
	return s;
}
