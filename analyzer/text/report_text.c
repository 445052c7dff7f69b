/* SPDX-License-Identifier: MIT */
#include "text/report_text.h"

#include <string.h>

#include "base/printable.h"
#include "base/size.h"
#include "text/text.h"
#include "text/text_wrap.h"

#define COLUMNS_USUAL 120u /* of what is no terminal */
#define COLUMNS_LEAST 60u
#define BOTH_COLUMNS 110u /* for two intervals */
#define MISSING_LISTED 32
#define OWN_CODE_MANY 0.1 /* of the samples */

/* What the numbers of blocks leave out. Bytes have no such line: their intervals hold for blocks of any size. */
static void put_unseen(const struct text *t)
{
	const struct report *r = t->report;
	struct estimate live = report_estimate(r, &r->total, FIGURE_LIVE_COUNT);
	struct estimate allocated = report_estimate(r, &r->total, FIGURE_ALLOCATED_COUNT);
	char number[40];

	if (!(live.unseen > 0) && !(allocated.unseen > 0))
		return;
	fprintf(t->out, "  %-18s %14s   up to", "unseen blocks", "");
	if (live.unseen > 0)
		fprintf(t->out, " %s live", text_grouped(live.unseen, number));
	if (live.unseen > 0 && allocated.unseen > 0)
		fputs(" and", t->out);
	if (allocated.unseen > 0)
		fprintf(t->out, " %s allocated", text_grouped(allocated.unseen, number));
	fputs(" ones, smaller than all samples\n", t->out);
}

static void put_totals(const struct text *t)
{
	const struct report *r = t->report;
	char level[40], value[40], range[96], growth[40], growth_range[96];

	/* Narrow lines have one interval: of a comparison that of the growth. */
	const bool narrow = report_compares(r) && t->columns < BOTH_COLUMNS;

	snprintf(level, sizeof level, "%g %% interval", 100 * r->options.confidence);
	if (narrow)
		fprintf(t->out, "\n  %s%-18s %14s   %12s  %s%s\n", t->dim, "", "estimate", "growth", level, t->plain);
	else
		fprintf(t->out, "\n  %s%-18s %14s   %-*s%s%s\n", t->dim, "", "estimate", report_compares(r) ? 26 : 0,
		        level, report_compares(r) ? "  growth" : "", t->plain);
	for (int f = 0; f < FIGURE_COUNT; f++) {
		struct estimate x = report_estimate(r, &r->total, f);
		fprintf(t->out, "  %-18s %s%14s%s   ", text_title(f), t->bold, text_amount(f, x.value, value),
		        t->plain);
		if (report_compares(r)) {
			struct estimate d = report_growth(r, &r->total, f);
			fprintf(t->out, "%*s  %*s  %s%s\n", narrow ? 0 : -26, narrow ? "" : text_interval(f, &x, range),
			        narrow ? 10 : 0, text_amount(f, d.value, growth), text_interval(f, &d, growth_range),
			        text_trust_mark(t, f));
		} else {
			fprintf(t->out, "%s%s\n", text_interval(f, &x, range), text_trust_mark(t, f));
		}
	}
	put_unseen(t);
	if (r->total.slack.sum.samples && r->total.slack.requested > 0 && !report_compares(r)) {
		struct estimate x = report_slack(r, &r->total.slack);
		fprintf(t->out, "  %-18s %14s   %s (%s of what was requested)\n", "allocator's slack",
		        size_format(x.value, value), text_interval(FIGURE_LIVE_BYTES, &x, range),
		        text_percent(x.value / r->total.slack.requested, growth));
		if (x.unseen > 0)
			fprintf(t->out, "  %-18s %14s   less than %s in blocks smaller than all samples\n", "", "",
			        size_format(x.unseen, value));
	}
}

static void put_rest(const struct text *t, size_t shown, bool brief)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	struct report_row rest = { 0 };
	char number[40], value[40], share[16];
	size_t more = 0;

	if (r->options.by == BY_STACK && !r->options.leaks && !report_compares(r)) {
		for (size_t i = shown; i < r->rows.count && r->rows.list[i].sum[f].samples; i++, more++)
			estimate_merge(&rest.sum[f], &r->rows.list[i].sum[f]);
	}
	if (!brief || more)
		putc('\n', t->out);
	if (more)
		fprintf(t->out, "%s more %s %s%s (%s); --top 0 shows all.\n", text_grouped((double)more, number),
		        text_plural((double)more, "stack holds", "stacks hold"),
		        text_amount(f, rest.sum[f].value, value), text_unit(f, rest.sum[f].value),
		        text_percent(report_share(r, &rest, f), share));
	if (r->options.by == BY_LIFETIME && !report_is_live(f))
		fputs("Lifetimes end with the session: what is live at its end may live longer.\n", t->out);
	if (r->options.by == BY_THREAD)
		fputs("What is live, by the thread that allocated it; what threads have allocated in all is not "
		      "kept.\n",
		      t->out);
	if (trust_live_doubtful(&r->trust) && (r->options.leaks || (report_compares(r) && report_is_live(f))))
		fprintf(t->out, "No stack is called %s: blocks that count as live may have been freed unseen.\n",
		        r->options.leaks ? "a leak" : "grown");
	else if (r->options.leaks)
		fputs("grows: old blocks become more; false alarms are limited over all stacks (Benjamini and "
		      "Hochberg).\n"
		      "LEAK: and old blocks are not freed; they live on for longer than the session, on average.\n",
		      t->out);
	else if (report_compares(r))
		fprintf(t->out,
		        "grown: %g %% of the stacks that are called so, at most, are expected to be chance (Benjamini "
		        "and Hochberg).\n",
		        100 * (1 - r->options.confidence));
	if (report_detection_limit(r) > 0 && !brief)
		fprintf(t->out, "A %s without a sample holds less than %s with %g %% confidence.\n",
		        group_by_name(r->options.by), size_format(report_detection_limit(r), value),
		        100 * r->options.confidence);
	if (report_unseen_blocks(r) > 0 && r->rows.count && !brief)
		fprintf(t->out,
		        "Intervals of block numbers leave out blocks smaller than all samples of the row: up to %s of "
		        "%u "
		        "bytes or more.\n",
		        text_grouped(report_unseen_blocks(r), number), report_hidden_bytes(r));
}

static const char *what_of(const struct image_found *file)
{
	if (file->incomplete)
		return "Symbols of";
	return file->source == IMAGE_SOURCE_NONE ? "No symbols for" : "Debug file used for";
}

/* Why frames have no names. */
static void put_missing_symbols(const struct text *t)
{
	const struct report *r = t->report;
	char path[LINE_TEXT], number[40];
	size_t count = 0;

	for (uint32_t i = 1; r->symbols && i < r->images.count; i++) {
		const struct image_found *file = symbols_image_file(r->symbols, i);
		if (!file || !file->reason || (file->source == IMAGE_SOURCE_FILE && !file->incomplete))
			continue;
		if (++count > MISSING_LISTED)
			continue;
		printable_copy(r->images.list[i].path, path, sizeof path);
		fprintf(t->out, "%s %s: %s.\n", what_of(file), path, file->reason);
	}
	if (count > MISSING_LISTED)
		fprintf(t->out, "... and %s more files (--json has them all).\n",
		        text_grouped((double)(count - MISSING_LISTED), number));
}

static void put_rounded(const struct text *t)
{
	char count[40];

	if (t->report->rounded)
		fprintf(t->out,
		        "%s %s are of aligned operator new, which asks for a multiple of the alignment:\n"
		        "  that is what is counted.\n",
		        text_grouped((double)t->report->rounded, count), text_samples(t->report->rounded));
}

/* What would say more of code that the process has made. */
static void put_own_code(const struct text *t)
{
	const struct report_own_code *own = &t->report->own_code;
	double cut = own->samples ? (double)own->cut / (double)own->samples : 0;
	double unnamed = own->samples ? (double)own->unnamed / (double)own->samples : 0;
	char share[16];

	if (cut >= OWN_CODE_MANY)
		fprintf(t->out,
		        "%s of the samples have a stack that ends in code which the process has made itself:\n"
		        "  with frame pointers it would go on (JVM: java -XX:+PreserveFramePointer).\n",
		        text_percent(cut, share));
	if (unnamed >= OWN_CODE_MANY)
		fprintf(t->out,
		        "%s of the samples have such code without a name in their stack, [jit]: %s\n"
		        "  (%s; JVM: jcmd PID Compiler.perfmap shortly before the session ends).\n",
		        text_percent(unnamed, share),
		        own->named ? "the map for perf lacks it" : "a map for perf names it",
		        own->named ? "made later, or the engine's own code" : "node --perf-basic-prof");
}

/* Whether the last lines say what was seen. */
static bool is_brief(const struct report *r)
{
	const struct report_options *o = &r->options;

	return !o->verbose && !o->leaks && !report_compares(r) && !(o->plan > 0) && !o->timeline;
}

/* The rows of the view, and what is to be said behind them. */
static void put_rows(const struct text *t, const char *name)
{
	const struct report_options *o = &t->report->options;
	bool brief = is_brief(t->report);

	if (o->tree) {
		text_tree(t);
		text_next(t, name);
		return;
	}
	size_t shown = o->by != BY_STACK ? groups_of_samples(o->by) ? text_classes(t) : text_groups(t)
	               : brief ? text_holders(t)
	                                 : text_rows(t);

	put_rest(t, shown, brief);
	text_machine(t);
	if (!o->verbose)
		text_next(t, name);
}

static void put_report(const struct text *t, const char *name)
{
	const struct report *r = t->report;
	const struct report_options *o = &r->options;

	text_head(t, name);
	if (o->verbose)
		text_facts(t);
	else if (r->session_count != 1 || o->at_ns || o->since_ns)
		text_sessions(t);
	text_about_files(t);
	text_filter(t);
	text_verdict(t);
	*t->gap = true;
	if (o->verbose || o->timeline || !text_all_measured(r))
		text_trust(t);
	text_warnings(t);
	*t->gap = false;
	if (o->verbose || report_compares(r)) {
		put_totals(t);
		text_beside_files(t);
	} else {
		text_totals(t);
	}
	if (o->timeline) {
		text_timeline(t);
		return;
	}
	put_rows(t, name);
	text_stack_notes(t);
	text_unnamed(t);
	put_missing_symbols(t);
	put_own_code(t);
	put_rounded(t);
}

void report_text(const struct report *r, const char *name, FILE *out, struct text_style style)
{
	bool gap = false;
	size_t labels = 0, columns = style.columns && style.columns < COLUMNS_LEAST ? COLUMNS_LEAST : style.columns;
	FILE *wrap = columns ? text_wrap_open(out, columns) : NULL;
	struct text t = { .report = r,
		          .out = wrap ? wrap : out,
		          .columns = columns ? columns : COLUMNS_USUAL,
		          .labels = &labels,
		          .gap = &gap,
		          .bold = style.colour ? "\033[1m" : "",
		          .dim = style.colour ? "\033[2m" : "",
		          .warn = style.colour ? "\033[33m" : "",
		          .plain = style.colour ? "\033[0m" : "" };
	char clean[LINE_TEXT];

	printable_copy(name, clean, sizeof clean);
	put_report(&t, clean);
	if (wrap)
		fclose(wrap);
}
