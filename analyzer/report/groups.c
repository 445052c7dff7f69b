/* SPDX-License-Identifier: MIT */
#include "report/groups.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/report.h"

#define MEMBER_TEXT 4096

static const struct location nothing;
static const char *const by_names[BY_COUNT] = { "stack",  "function", "file",     "line",      "module",
	                                        "thread", "size",     "lifetime", "residency", "type",
	                                        "holder", "process",  "program",  "unit",      "container" };

int group_by_parse(const char *name)
{
	for (int i = 0; i < BY_COUNT; i++)
		if (!strcmp(name, by_names[i]))
			return i;
	return -1;
}

const char *group_by_name(enum group_by by)
{
	return by_names[by];
}

struct group *groups_named(struct groups *g, uint32_t image, const char *name)
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
	struct group *group = groups_named(g, image, name);

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
	if (first)
		row_merge_lost(group->lost_exclusive, row->lost);
	if (!again)
		row_merge_lost(group->lost_inclusive, row->lost);
	group->last_row = number + 1;
	return 0;
}

/* A function that is at a place, and what it is called in the groups. */
struct member {
	uint64_t place;
	const struct location *location;
	char text[MEMBER_TEXT];
	const char *name;
	uint32_t image;
};

static void name_function(struct member *m)
{
	m->name = m->location->function;
	m->image = PLACE_IMAGE(m->place);
	if (m->name)
		return;
	snprintf(m->text, sizeof m->text, "%s0x%" PRIx64, m->image ? "+" : "", PLACE_OFFSET(m->place));
	m->name = m->text;
}

/* One file is that of all modules into which it was compiled. */
static void name_member(struct member *m, const struct report *r)
{
	const struct location *l = m->location;
	const char *path;

	m->image = 0;
	switch (r->options.by) {
	case BY_FILE:
		m->image = l->file ? 0 : PLACE_IMAGE(m->place);
		m->name = l->file ? l->file : "(source file not known)";
		break;
	case BY_LINE:
		if (!l->file || !l->line) {
			name_function(m);
			break;
		}
		snprintf(m->text, sizeof m->text, "%.*s:%d", MEMBER_TEXT - 16, l->file, l->line);
		m->name = m->text;
		break;
	case BY_MODULE:
		m->image = PLACE_IMAGE(m->place);
		path = m->image ? r->images.list[m->image].path : NULL;
		m->name = path ? path : "(no module)";
		break;
	default: name_function(m);
	}
}

/* Adds a row to all that stands in its stack, but for functions of the allocator that are folded. */
static int add_members(struct groups *g, const struct report *r, const struct report_row *row, size_t number)
{
	struct report_own own = report_own(r, row);
	struct member m;

	for (uint32_t i = r->options.by == BY_FUNCTION ? (uint32_t)own.frame : 0; i < row->frame_count; i++) {
		size_t n = 1;
		m.place = row->frames[i];
		m.location = r->options.by == BY_MODULE ? &nothing : report_locations(r, m.place, &n);
		for (size_t k = 0; k < n; k++, m.location++) {
			if (r->options.by == BY_FUNCTION && i == own.frame && k < own.location)
				continue;
			name_member(&m, r);
			if (add_row(g, m.image, m.name, row, number, i == own.frame && k == own.location))
				return -ENOMEM;
		}
	}
	return 0;
}

static int compare_groups(const void *a, const void *b, void *context)
{
	const enum report_figure sort_figure = *(const enum report_figure *)context;
	const struct group *x = a;
	const struct group *y = b;
	double d = y->exclusive[sort_figure].value - x->exclusive[sort_figure].value;

	if (d == 0)
		d = y->inclusive[sort_figure].value - x->inclusive[sort_figure].value;
	if (d != 0)
		return d > 0 ? 1 : -1;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->tid > y->tid) - (x->tid < y->tid);
}

void groups_sort(struct groups *g, enum report_figure sort, enum group_by by)
{
	if (g->count && !groups_class(by))
		qsort_r(g->list, g->count, sizeof *g->list, compare_groups, &sort);
}

void groups_share_error(struct groups *g, const struct report *r, enum group_by by)
{
	bool samples = groups_of_samples(by);

	for (size_t i = 0; i < g->count && !groups_class(by); i++) {
		struct group *group = &g->list[i];
		const struct estimate_sum *sum = samples ? group->inclusive : group->exclusive;
		for (int k = 0; k < 2; k++)
			group->part[k] = estimate_listed_share(&sum[k ? FIGURE_ALLOCATED_BYTES : FIGURE_LIVE_BYTES],
			                                       r->options.confidence, r->listed_whole[k]);
	}
}

int groups_make(struct groups *g, const struct report *r)
{
	const struct rows *rows = &r->rows;

	*g = (struct groups){ 0 };
	for (size_t i = 0; i < rows->count; i++) {
		const struct report_row *row = &rows->list[i];
		progress_at(r->options.progress, "looking up functions", i, rows->count);
		for (size_t k = i; r->symbols && r->options.by != BY_MODULE && i % REPORT_AHEAD == 0 &&
		                   k < rows->count && k < i + REPORT_AHEAD;
		     k++)
			symbols_want(r->symbols, rows->list[k].frames, rows->list[k].frame_count);
		int s = row->unknown       ? add_row(g, 0, "(stack not known)", row, i, true)
		        : row->frame_count ? add_members(g, r, row, i)
		                           : add_row(g, 0, "(no frame is shown)", row, i, true);
		if (s)
			return s;
	}
	groups_sort(g, r->options.sort, r->options.by);
	groups_share_error(g, r, r->options.by);
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

static int add_class(struct groups *g, const struct class_sum *sum, double low, double high, bool others)
{
	if (!grow_list(g->list, g->count))
		return -ENOMEM;
	struct group *group = &g->list[g->count];
	*group = (struct group){
		.name = strdup(""), .low = low, .high = high, .others = others, .slack_inclusive = sum->slack
	};
	memcpy(group->inclusive, sum->sum, sizeof sum->sum);
	return group->name ? (g->count++, 0) : -ENOMEM;
}

/* What is in the total and in no class: samples that were freed, and whose record had to go. */
static struct class_sum make_gone(const struct report_row *total, const struct class_sum *known)
{
	struct class_sum gone = { 0 };

	for (int f = FIGURE_ALLOCATED_BYTES; f < FIGURE_COUNT; f++) {
		const struct estimate_sum *all = &total->sum[f], *part = &known->sum[f];
		if (all->samples <= part->samples)
			continue;
		gone.sum[f] = (struct estimate_sum){ .value = fmax(0, all->value - part->value),
			                             .variance = fmax(0, all->variance - part->variance),
			                             .seen = fmax(0, all->seen - part->seen),
			                             .next = all->next,
			                             .samples = all->samples - part->samples,
			                             .hidden = all->hidden };
		gone.sum[f].seen = fmin(gone.sum[f].seen, gone.sum[f].value);
	}
	return gone;
}

static bool class_is_empty(const struct class_sum *sum)
{
	return !sum->sum[FIGURE_LIVE_COUNT].samples && !sum->sum[FIGURE_ALLOCATED_COUNT].samples;
}

int groups_add_classes(struct groups *g, const struct classes *classes, enum group_by by,
                       const struct report_row *total)
{
	struct class_sum all = { 0 };
	double low, high;
	int s = 0;

	for (size_t i = 0; !s && i < CLASS_COUNT; i++) {
		const struct class_sum *sum = &classes_of(classes, groups_class(by))[i];
		for (int f = 0; f < FIGURE_COUNT; f++)
			estimate_merge(&all.sum[f], &sum->sum[f]);
		class_limits(groups_class(by), i, &low, &high);
		if (!class_is_empty(sum))
			s = add_class(g, sum, low, high, false);
	}
	const struct class_sum gone = make_gone(total, &all);
	return s || class_is_empty(&gone) ? s : add_class(g, &gone, 0, INFINITY, true);
}

int groups_add_labels(struct groups *g, const struct labels_of *labels, uint64_t rate)
{
	for (size_t i = 0; i < labels->count; i++) {
		const struct label *label = &labels->list[i];
		if (class_is_empty(&label->sum))
			continue;
		struct group *group = groups_named(g, label->source, label->text);
		if (!group)
			return -ENOMEM;
		for (int f = 0; f < FIGURE_COUNT; f++) {
			struct estimate_sum sum = label->sum.sum[f];
			if (report_is_bytes(f))
				estimate_expect(&sum, rate > 1 ? (double)rate : 0);
			else
				estimate_hide(&sum, rate);
			estimate_merge(&group->inclusive[f], &sum);
		}
		slack_merge(&group->slack_inclusive, &label->sum.slack);
	}
	return 0;
}

int groups_add_gone(struct groups *g, const struct report_row *total)
{
	struct class_sum all = { 0 };

	for (size_t i = 0; i < g->count; i++)
		for (int f = 0; f < FIGURE_COUNT; f++)
			estimate_merge(&all.sum[f], &g->list[i].inclusive[f]);
	const struct class_sum gone = make_gone(total, &all);
	return class_is_empty(&gone) ? 0 : add_class(g, &gone, 0, INFINITY, true);
}

const struct labels_look *groups_unknown(const struct recorded_session *sessions, size_t count, enum group_by by)
{
	for (size_t i = 0; i < count; i++) {
		const struct labels_look *look = &sessions[i].labels;
		if (!look->known || (by == BY_TYPE ? look->cut : !look->holders))
			return look;
	}
	return NULL;
}

void groups_done(struct groups *g)
{
	for (size_t i = 0; i < g->count; i++)
		free(g->list[i].name);
	free(g->list);
	map_done(&g->group_of);
	*g = (struct groups){ 0 };
}
