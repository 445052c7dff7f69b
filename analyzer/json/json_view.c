/* SPDX-License-Identifier: MIT */
#include "json/json_view.h"

#include <math.h>

/* A fraction of more says nothing. */
#define WHOLE_FROM 65536.0
#define ERROR_WHOLE_FROM 1000.0

static void put_interval(struct json *j, const struct estimate *x, double low, double high)
{
	json_estimate(j, "estimate", x->value);
	json_estimate(j, "stderr", x->error < ERROR_WHOLE_FROM ? x->error : round(x->error));
	json_estimate(j, "low", low);
	json_estimate(j, "high", high);
}

void json_interval(struct json *j, const struct estimate *x)
{
	put_interval(j, x, x->low, x->high);
}

/* The ends are rounded outward. */
void json_bytes(struct json *j, const char *name, struct estimate x)
{
	json_object(j, name);
	put_interval(j, &x, fabs(x.low) < WHOLE_FROM ? x.low : floor(x.low),
	             fabs(x.high) < WHOLE_FROM ? x.high : ceil(x.high));
	json_object_end(j);
}

void json_filter(struct json *j, const struct report *r)
{
	const struct filter_options *o = &r->options.filter;
	enum report_figure f = r->options.sort;

	if (!filter_any(o) && !o->hide) {
		json_string(j, "filter", NULL);
		return;
	}
	json_object(j, "filter");
	json_string(j, "focus", o->focus);
	json_string(j, "ignore", o->ignore);
	json_string(j, "show_from", o->show_from);
	json_string(j, "hide", o->hide);
	json_string(j, "thread", o->thread);
	json_number(j, "size_low_bytes", (double)o->size_low);
	json_number(j, "size_high_bytes", o->size_high ? (double)o->size_high : NAN);
	json_number(j, "older_seconds", o->older_ns ? (double)o->older_ns / 1e9 : NAN);
	json_estimate(j, "kept", r->total.sum[f].value);
	json_estimate(j, "of", r->unfiltered.sum[f].value);
	json_unsigned(j, "samples_kept", r->total.sum[f].samples);
	json_unsigned(j, "samples_of", r->unfiltered.sum[f].samples);
	json_estimate(j, "not_assigned", r->unassigned[f].value);
	json_unsigned(j, "samples_not_assigned", r->unassigned[f].samples);
	json_object_end(j);
}

static void put_thread(struct json *j, const struct group *g)
{
	json_string(j, "thread", g->name[0] ? g->name : NULL);
	json_number(j, "tid", g->tid ? g->tid : NAN);
	json_number(j, "pid", g->others ? NAN : g->pid);
	json_bool(j, "others", g->others);
}

void json_group_names(struct json *j, const struct report *r, const struct group *g)
{
	enum group_by by = r->options.by;

	if (by == BY_THREAD) {
		put_thread(j, g);
		return;
	}
	if (groups_of_sessions(by)) {
		json_string(j, group_by_name(by), g->name);
		json_unsigned(j, "sessions", g->sessions);
		json_number(j, "private_growth", g->private_growth);
		return;
	}
	if (groups_label(by) != LABEL_KINDS) {
		json_string(j, group_by_name(by), g->others ? NULL : g->name);
		if (by == BY_TYPE)
			json_string(j, "source", g->others ? "" : label_source_name((enum dump_type_source)g->image));
		return;
	}
	if (by == BY_RESIDENCY) {
		json_string(j, "residency", g->others ? NULL : residency_name((enum residency)g->low));
		return;
	}
	if (groups_of_samples(by)) {
		json_number(j, "low", g->others ? NAN : g->low);
		json_number(j, "high", g->others ? NAN : g->high);
		json_bool(j, "others", g->others);
		return;
	}
	if (by != BY_MODULE)
		json_string(j, group_by_name(by), g->name);
	json_string(j, "module", r->images.list[g->image].path);
}

void json_machine(struct json *j, const struct report *r)
{
	const struct machine *m = r->options.machine;

	if (!m)
		return;
	json_array(j, "not_profiled");
	for (size_t i = 0; i < m->unseen_count; i++) {
		json_object(j, NULL);
		json_unsigned(j, "count", m->unseen[i].count);
		json_string(j, "name", m->unseen[i].name);
		json_string(j, "why", m->unseen[i].why);
		json_object_end(j);
	}
	json_array_end(j);
}

/* What was resident, at moments of its own. */
static void put_usage(struct json *j, const struct usage *usage)
{
	json_array(j, "resident_timeline");
	for (size_t i = 0; i < usage->count; i++) {
		const struct usage_point *point = &usage->list[i];
		json_object(j, NULL);
		json_number(j, "seconds", point->seconds);
		json_bool(j, "looked_at", point->is_look);
		json_number(j, "resident", point->rss);
		json_number(j, "swapped", point->swapped);
		json_object(j, "parts");
		for (int k = 1; k < DUMP_MEMORY_KINDS; k++)
			if (point->parts[k] > 0)
				json_number(j, resident_kind_name((enum dump_memory_kind)k), point->parts[k]);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

void json_timeline(struct json *j, const struct report *r)
{
	if (!r->options.timeline)
		return;
	struct estimate highest = report_highest(r);
	json_object(j, "timeline_highest");
	json_number(j, "low", highest.low);
	json_number(j, "high", highest.high);
	json_object_end(j);
	json_array(j, "timeline");
	for (size_t i = 0; i < r->timeline.count; i++) {
		const struct timeline_point *point = &r->timeline.points[i];
		json_object(j, NULL);
		json_number(j, "seconds", (double)point->ns / 1e9);
		json_bytes(j, "live_bytes", report_at_moment(r, &point->live, true));
		json_bytes(j, "allocated_bytes", report_at_moment(r, &point->allocated, false));
		json_unsigned(j, "samples_live", point->live.samples);
		json_unsigned(j, "samples", point->allocated.samples);
		json_bool(j, "incomplete", point->incomplete);
		json_object_end(j);
	}
	json_array_end(j);
	put_usage(j, &r->usage);
}
