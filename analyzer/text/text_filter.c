/* SPDX-License-Identifier: MIT */
/* What a filter leaves out, in the head of the text report. */
#include <string.h>

#include "base/printable.h"
#include "base/size.h"
#include "text/text.h"

#define OPTION_TEXT 200

static void add_name(char line[LINE_TEXT], const char *option, const char *value)
{
	char clean[OPTION_TEXT];
	size_t used = strlen(line);

	if (!value)
		return;
	printable_copy(value, clean, sizeof clean);
	snprintf(line + used, LINE_TEXT - used, "%s--%s=%s", used ? " " : "", option, clean);
}

void text_filter_options(const struct filter_options *o, char line[LINE_TEXT])
{
	char low[SIZE_TEXT] = "", high[SIZE_TEXT] = "", text[64];

	line[0] = 0;
	add_name(line, "focus", o->focus);
	add_name(line, "ignore", o->ignore);
	add_name(line, "show-from", o->show_from);
	add_name(line, "hide", o->hide);
	add_name(line, "thread", o->thread);
	if (o->size_low)
		size_format((double)o->size_low, low);
	if (o->size_high)
		size_format((double)o->size_high, high);
	snprintf(text, sizeof text, "%s..%s", low, high);
	if (o->size_low || o->size_high)
		add_name(line, "size", text);
	snprintf(text, sizeof text, "%gs", (double)o->older_ns / 1e9);
	if (o->older_ns)
		add_name(line, "older", text);
}

bool text_unassigned(const struct report *r, char line[LINE_TEXT])
{
	const struct estimate_sum *sum = &r->unassigned[r->options.sort];
	char a[40], b[40];

	if (!sum->samples)
		return false;
	snprintf(line, LINE_TEXT, "%s in %s samples without a stack, %s", text_amount(r->options.sort, sum->value, a),
	         text_grouped((double)sum->samples, b),
	         report_has_unassigned(r) ? "which count as kept and may be of what is left out"
	                                  : "which are left out and may be of what is kept");
	return true;
}

void text_filter(const struct text *t)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	const struct estimate_sum *kept = &r->total.sum[f];
	const struct estimate_sum *all = &r->unfiltered.sum[f];
	char line[LINE_TEXT], a[40], b[40], c[40], d[40], share[16];

	if (!filter_any(&r->options.filter) && !r->options.filter.hide)
		return;
	text_filter_options(&r->options.filter, line);
	text_label(t, "filter");
	fprintf(t->out, "%s\n", line);
	if (!filter_any(&r->options.filter))
		return;
	text_label(t, "");
	fprintf(t->out, "kept %s of %s%s %s (%s), %s of %s samples\n", text_amount(f, kept->value, a),
	        text_amount(f, all->value, b), report_is_bytes(f) ? "" : " blocks",
	        report_is_live(f) ? "live" : "allocated",
	        text_percent(all->value > 0 ? kept->value / all->value : 0, share),
	        text_grouped((double)kept->samples, c), text_grouped((double)all->samples, d));
	if (text_unassigned(r, line)) {
		text_label(t, "");
		fprintf(t->out, "not assigned: %s\n", line);
	}
	if (filter_by_record(&r->options.filter) && r->past_unknown)
		text_warning(t, "INCOMPLETE",
		             "what was freed and is in the history no more is missing from what was allocated");
}
