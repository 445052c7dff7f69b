/* SPDX-License-Identifier: MIT */
#include "output/group_title.h"

#include <math.h>
#include <stdio.h>

#include "base/printable.h"
#include "base/size.h"

static void thread_title(const struct report *r, const struct group *g, char title[GROUP_TITLE_TEXT])
{
	char id[64];

	snprintf(id, sizeof id, r->session_count > 1 ? "tid %u of PID %d" : "tid %u", g->tid, g->pid);
	if (g->others)
		snprintf(title, GROUP_TITLE_TEXT, "(all other threads)");
	else if (!g->tid)
		snprintf(title, GROUP_TITLE_TEXT, "(thread not known)");
	else if (!g->name[0])
		snprintf(title, GROUP_TITLE_TEXT, "(%s, no name recorded)", id);
	else
		snprintf(title, GROUP_TITLE_TEXT, "%s (%s)", g->name, id);
	printable_copy(title, title, GROUP_TITLE_TEXT);
}

static const char *format_seconds(double seconds, char text[40])
{
	static const struct {
		double unit;
		const char *name;
	} units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } };
	size_t i = 0;

	while (i < sizeof units / sizeof units[0] - 1 && seconds < units[i].unit * (1 - 1e-9))
		i++;
	snprintf(text, 40, "%.3g %s", seconds / units[i].unit, units[i].name);
	return text;
}

static const char *format_limit(enum group_by by, double limit, char text[40])
{
	return by == BY_SIZE ? size_format(limit, text) : format_seconds(limit, text);
}

static void class_title(enum group_by by, const struct group *g, char title[GROUP_TITLE_TEXT])
{
	char low[40], high[40];

	format_limit(by, g->low, low);
	if (by == BY_RESIDENCY && !g->others)
		snprintf(title, GROUP_TITLE_TEXT, "%s", residency_name((enum residency)g->low));
	else if (g->others)
		snprintf(title, GROUP_TITLE_TEXT, "(not known any more)");
	else if (by == BY_SIZE && g->high - g->low == 1)
		snprintf(title, GROUP_TITLE_TEXT, "%s", low);
	else if (isinf(g->high))
		snprintf(title, GROUP_TITLE_TEXT, "%s or more", low);
	else if (by == BY_LIFETIME && !(g->low > 0))
		snprintf(title, GROUP_TITLE_TEXT, "below %s", format_limit(by, g->high, high));
	else
		snprintf(title, GROUP_TITLE_TEXT, "%s .. %s", low, format_limit(by, g->high, high));
}

static void label_title(enum group_by by, const struct group *g, char title[GROUP_TITLE_TEXT])
{
	static const char *const sources[DUMP_TYPE_SOURCES] = {
		[DUMP_TYPE_VTABLE] = " (C++)", [DUMP_TYPE_PYTHON] = " (Python)"
	};
	const char *source = by == BY_TYPE && g->image < DUMP_TYPE_SOURCES ? sources[g->image] : NULL;

	snprintf(title, GROUP_TITLE_TEXT, "%.*s%s", GROUP_TITLE_TEXT - 16, g->others ? "(not known any more)" : g->name,
	         source ? source : "");
	printable_copy(title, title, GROUP_TITLE_TEXT);
}

const char *group_title(const struct report *r, const struct group *g, char title[GROUP_TITLE_TEXT])
{
	if (r->options.by == BY_THREAD)
		thread_title(r, g, title);
	else if (groups_label(r->options.by) != LABEL_KINDS)
		label_title(r->options.by, g, title);
	else if (groups_of_sessions(r->options.by))
		printable_copy(g->name, title, GROUP_TITLE_TEXT);
	else
		class_title(r->options.by, g, title);
	return title;
}
