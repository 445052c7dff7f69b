/* SPDX-License-Identifier: MIT */
#include "report/session_groups.h"

#include <stdio.h>

#include "base/group_names.h"

#define NAME_TEXT 512u

_Static_assert(sizeof((struct recorded_session *)0)->groups / sizeof(uint32_t) == SESSION_KINDS, "one for each kind");

static void name_container(const struct group_names *names, const char *image, char text[NAME_TEXT])
{
	if (!names->container[0] && !names->pod[0])
		snprintf(text, NAME_TEXT, "(no container)");
	else
		snprintf(text, NAME_TEXT, "%s%s%.*s%s%s", image, image[0] ? " " : "", (int)CONTAINER_SHOWN,
		         names->container, names->pod[0] ? " of pod " : "", names->pod);
}

static void name_session(const struct recorded_session *s, enum group_by by, char text[NAME_TEXT])
{
	struct group_names names;

	group_names_of(s->cgroup, &names);
	if (by == BY_PROCESS)
		snprintf(text, NAME_TEXT, "%s (PID %d on %s)", s->command, s->pid, s->host);
	else if (by == BY_PROGRAM)
		snprintf(text, NAME_TEXT, "%s", s->program[0] ? s->program : s->command);
	else if (by == BY_UNIT)
		snprintf(text, NAME_TEXT, "%s", names.unit[0] ? names.unit : "(no unit)");
	else
		name_container(&names, s->image, text);
}

static void add_figures(struct group *g, const struct report_row *whole, uint64_t rate)
{
	for (int f = 0; f < FIGURE_COUNT; f++) {
		estimate_merge(&g->inclusive[f], &whole->sum[f]);
		if (report_is_bytes((enum report_figure)f))
			estimate_expect(&g->inclusive[f], rate > 1 ? (double)rate : 0);
		else
			estimate_hide(&g->inclusive[f], rate);
	}
	slack_merge(&g->slack_inclusive, &whole->slack);
}

/* To the group that it has among these. */
static int add(struct groups *groups, struct recorded_session *s, enum group_by by, const struct report_row *whole,
               uint64_t rate)
{
	char name[NAME_TEXT];
	size_t known = groups->count;

	name_session(s, by, name);
	struct group *g = groups_named(groups, 0, name);
	if (!g)
		return -ENOMEM;
	if (groups->count > known)
		g->number = (uint32_t)known;
	s->groups[by - BY_PROCESS] = g->number;
	add_figures(g, whole, rate);
	g->sessions++;
	if (s->private_start_bytes && s->private_latest_bytes)
		g->private_growth += (double)s->private_latest_bytes - (double)s->private_start_bytes;
	return 0;
}

bool session_groups_wanted(const struct report_options *options)
{
	return options->processes || groups_of_sessions(options->by);
}

int session_groups_add(struct report *r, const struct report_row *whole, uint64_t rate)
{
	struct recorded_session *s = &r->sessions[r->session_count - 1];
	int rc = groups_of_sessions(r->options.by) ? add(&r->groups, s, r->options.by, whole, rate) : 0;

	for (unsigned i = 0; !rc && r->options.processes && i < SESSION_KINDS; i++)
		rc = add(&r->session_groups[i], s, BY_PROCESS + i, whole, rate);
	return rc;
}
