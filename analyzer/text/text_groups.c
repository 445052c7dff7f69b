/* SPDX-License-Identifier: MIT */
/* The tables of the text report by function, file, line, module, thread, size and lifetime. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "output/short_name.h"
#include "base/size.h"
#include "output/group_title.h"
#include "text/text.h"

static struct estimate group_estimate(const struct report *r, const struct group *g, bool own)
{
	const struct report_row row = report_group(g, own);

	return report_estimate(r, &row, r->options.sort);
}

#define UNSEEN_SHOWN 12u

static const char *plural_of(enum group_by by)
{
	static const char *const names[BY_COUNT] = { "Stacks",  "Functions", "Files",     "Lines",     "Modules",
		                                     "Threads", "Sizes",     "Lifetimes", "Residency", "Types",
		                                     "Holders", "Processes", "Programs",  "Units",     "Containers" };

	return names[by];
}

/* Of Python as source_places_short has it, else the last components; with its line. */
static void put_short_file(const struct report *r, const char *name, char out[LINE_TEXT])
{
	const char *colon = r->options.by == BY_LINE ? strrchr(name, ':') : NULL;
	size_t n = colon ? (size_t)(colon - name) : strlen(name);
	char file[LINE_TEXT], text[LINE_TEXT];

	snprintf(file, sizeof file, "%.*s", (int)n, name);
	const char *shown = source_places_short(&r->images.sources, file);
	if (shown == file) {
		printable_copy(text_short_path(name), out, LINE_TEXT);
		return;
	}
	snprintf(text, sizeof text, "%.*s%s", LINE_TEXT - 16, shown, colon ? colon : "");
	printable_copy(text, out, LINE_TEXT);
}

static void name_group(const struct text *t, const struct group *g, char name[LINE_TEXT], char module[LINE_TEXT])
{
	const struct report *r = t->report;
	bool functions = r->options.by == BY_FUNCTION;
	bool path = r->options.by == BY_FILE || r->options.by == BY_LINE;

	module[0] = 0;
	if (r->options.by != BY_MODULE && g->image)
		printable_copy(image_name(&r->images.list[g->image]), module, LINE_TEXT);
	if (!r->options.full_names)
		short_name_cut(module, 14);
	if (path) {
		if (r->options.full_names || g->image)
			printable_copy(g->name, name, LINE_TEXT);
		else
			put_short_file(r, g->name, name);
		if (!r->options.full_names)
			short_name_cut(name, module[0] ? 44 : 62);
	} else {
		text_name(r, g->name, functions ? 44 : 62, name);
	}
}

static void put_group(const struct text *t, const struct group *g)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	struct estimate own = group_estimate(r, g, true);
	struct estimate all = group_estimate(r, g, false);
	char name[LINE_TEXT], module[LINE_TEXT], a[40], b[40], range[96];

	name_group(t, g, name, module);
	fprintf(t->out, "  %12s  %-26s %12s  %s%s%s%s\n", text_amount(f, own.value, a), text_interval(f, &own, range),
	        text_amount(f, all.value, b), name, module[0] ? " (" : "", module, module[0] ? ")" : "");
	if (g->inclusive[f].samples > g->exclusive[f].samples)
		fprintf(t->out, "      %sinclusive %s  %s%s\n", t->dim, text_amount(f, all.value, a),
		        text_interval(f, &all, range), t->plain);
	if (r->options.verbose)
		text_slack(t, &g->slack_exclusive);
}

/* What --top has left out. */
static void put_more(const struct text *t, size_t count, const struct report_row *rest)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	char number[40], value[40], share[16];

	if (count)
		fprintf(t->out, "\n%s more %s %s%s (%s); --top 0 shows all.\n", text_grouped((double)count, number),
		        text_plural((double)count, "holds", "hold"), text_amount(f, rest->sum[f].value, value),
		        text_unit(f, rest->sum[f].value), text_percent(report_share(r, rest, f), share));
}

/* Those that only pass on what others hold come last, and are counted unless all are wanted. */
size_t text_groups(const struct text *t)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	struct report_row rest = { 0 };
	char number[40];
	size_t shown = 0, more = 0, passing = 0;

	fprintf(t->out, "\n%s by %s of their own\n\n  %s%12s  %-26s %12s  %s%s\n", plural_of(r->options.by),
	        text_title(f), t->dim, "own", "interval", "inclusive",
	        r->options.by == BY_FUNCTION ? "function (module)" : group_by_name(r->options.by), t->plain);
	for (size_t i = 0; i < r->groups.count; i++) {
		const struct group *g = &r->groups.list[i];
		if (!g->inclusive[f].samples)
			continue;
		bool passes = !g->exclusive[f].samples;
		if (passes && r->options.top)
			passing++;
		else if (i < report_shown(r))
			put_group(t, g), shown++;
		else
			estimate_merge(&rest.sum[f], &g->exclusive[f]), more++;
	}
	put_more(t, more, &rest);
	if (passing)
		fprintf(t->out, "\n%s more %s nothing of %s own and only %s on what others hold; --top 0 shows all.\n",
		        text_grouped((double)passing, number), text_plural((double)passing, "has", "have"),
		        text_plural((double)passing, "its", "their"), text_plural((double)passing, "passes", "pass"));
	return shown;
}

static const char *class_title(const struct report *r)
{
	if (r->options.by == BY_THREAD)
		return "thread that allocated it";
	if (groups_of_sessions(r->options.by))
		return group_by_name(r->options.by);
	if (r->options.by == BY_RESIDENCY)
		return "what of a block is there at the end";
	if (groups_label(r->options.by) != LABEL_KINDS)
		return r->options.by == BY_TYPE ? "what a block is at the end"
		                                : "who holds it at the end (one of several)";
	if (r->options.by == BY_SIZE)
		return "size that was asked for";
	return report_is_live(r->options.sort) ? "age" : "lifetime, or age of what is live";
}

/* What the kernel says of the processes of a group. */
static void put_sessions(const struct text *t, const struct group *g)
{
	char bytes[SIZE_TEXT];

	if (g->sessions > 1)
		fprintf(t->out, "   %u sessions", g->sessions);
	if (g->sessions && !t->report->options.files)
		fprintf(t->out, "   private memory %s%s", g->private_growth < 0 ? "-" : "+",
		        size_format(fabs(g->private_growth), bytes));
}

/* Processes, or groups of them, of which no sample is live, or was taken. high: the largest upper end. */
static void put_silent(const struct text *t, size_t silent, double high)
{
	const struct report *r = t->report;
	char number[40], most[SIZE_TEXT];

	if (!silent || !groups_of_sessions(r->options.by))
		return;
	fprintf(t->out, "\n%s more %s no sample of it", text_grouped((double)silent, number),
	        text_plural((double)silent, "has", "have"));
	if (report_is_bytes(r->options.sort) && high > 0)
		fprintf(t->out, ": each has less than %s", size_format(high, most));
	fputs(".\n", t->out);
}

/* Who was not profiled. */
void text_machine(const struct text *t)
{
	const struct machine *m = t->report->options.machine;
	char name[LINE_TEXT], why[LINE_TEXT];
	size_t most = t->report->options.top ? UNSEEN_SHOWN : SIZE_MAX;

	if (!m || !m->unseen_count)
		return;
	fputs("\nNot profiled:\n", t->out);
	for (size_t i = 0; i < m->unseen_count && i < most; i++) {
		printable_copy(m->unseen[i].name, name, sizeof name);
		printable_copy(m->unseen[i].why, why, sizeof why);
		fprintf(t->out, "  %u %s: %s\n", m->unseen[i].count, name[0] ? name : "?", why);
	}
	if (m->unseen_count > most)
		fprintf(t->out, "  and %zu lines more; --top 0 shows all\n", m->unseen_count - most);
}

/* Why the types or holders of blocks are not known. */
static void put_not_looked_at(const struct text *t)
{
	const struct report *r = t->report;
	const struct labels_look *look = groups_unknown(r->sessions, r->session_count, r->options.by);
	char why[LINE_TEXT];

	if (!look)
		return;
	printable_copy(look->why, why, sizeof why);
	if (!look->known)
		fputs("\nNobody has looked at the blocks: the session has not ended by detaching, or its memattach "
		      "does not.\n",
		      t->out);
	else if (r->options.by == BY_TYPE)
		fputs("\nThere was no time to look at all blocks.\n", t->out);
	else if (why[0])
		fprintf(t->out, "\nWho holds them is not known: %s.\n", why);
	else
		fputs("\nNobody has looked for who holds them: memattach --holders does at the end of a session.\n",
		      t->out);
}

size_t text_classes(const struct text *t)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	enum report_figure other = text_companion(f);
	char name[LINE_TEXT], a[40], b[40], range[96], share[16];
	struct report_row rest = { 0 };
	size_t shown = 0, more = 0, silent = 0;
	double silent_high = 0;

	fprintf(t->out, "\n%s by %s\n\n  %s%12s  %-26s %7s  %s%s\n", plural_of(r->options.by), text_title(f), t->dim,
	        "estimate", "interval", "share", class_title(r), t->plain);
	for (size_t i = 0; i < r->groups.count; i++) {
		const struct group *g = &r->groups.list[i];
		const struct report_row row = report_thread(r, g);
		struct estimate x = report_estimate(r, &row, f);
		struct estimate y = report_estimate(r, &row, other);
		if (!row.sum[f].samples) {
			silent_high = fmax(silent_high, x.high);
			silent++;
			continue;
		}
		if (i >= report_shown(r)) {
			estimate_merge(&rest.sum[f], &row.sum[f]);
			more++;
			continue;
		}
		shown++;
		fprintf(t->out, "  %12s  %-26s %7s  %s\n", text_amount(f, x.value, a), text_interval(f, &x, range),
		        text_percent(report_share(r, &row, f), share), group_title(r, g, name));
		fprintf(t->out, "      %sin %s%s  %s", t->dim, text_amount(other, y.value, a),
		        text_unit(other, y.value), text_interval(other, &y, range));
		fprintf(t->out, "   %s %s", text_grouped((double)row.sum[f].samples, b),
		        text_samples(row.sum[f].samples));
		put_sessions(t, g);
		fprintf(t->out, "%s\n", t->plain);
		if (r->options.verbose)
			text_slack(t, &row.slack);
	}
	put_more(t, more, &rest);
	put_silent(t, silent, silent_high);
	if (!shown)
		fputs("\n      none\n", t->out);
	else if (groups_label(r->options.by) != LABEL_KINDS)
		put_not_looked_at(t);
	return shown;
}
