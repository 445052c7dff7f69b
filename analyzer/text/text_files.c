/* SPDX-License-Identifier: MIT */
/* Mappings of files, in the text report: beside the totals of memory, or instead of them. */
#include "text/text.h"

const char *text_live_word(const struct report *r)
{
	return r->options.files ? "mapped" : "live";
}

const char *text_allocated_word(const struct report *r)
{
	return r->options.files ? "mapped" : "allocated";
}

void text_about_files(const struct text *t)
{
	if (!t->report->options.files)
		return;
	text_label(t, "about");
	fputs("mappings of files: address space, and no memory but what was written to private ones\n", t->out);
}

/* As the lines of the totals are in a report with everything. */
static void put_amount(const struct text *t, const char *name, enum report_figure f)
{
	struct estimate x = report_estimate(t->report, &t->report->beside, f);
	char value[40], range[96];

	fprintf(t->out, "  %-18s %s%14s%s   %s\n", name, t->bold, text_amount(f, x.value, value), t->plain,
	        text_interval(f, &x, range));
}

void text_beside_files(const struct text *t)
{
	const struct report *r = t->report;

	if (r->options.files || report_compares(r) || r->options.at_ns ||
	    !r->beside.sum[FIGURE_ALLOCATED_COUNT].samples)
		return;
	if (r->options.verbose) {
		put_amount(t, "mapped files", FIGURE_LIVE_BYTES);
		put_amount(t, "mappings of files", FIGURE_LIVE_COUNT);
	} else {
		text_total(t, "mapped files", &r->beside, FIGURE_LIVE_BYTES);
	}
	fprintf(t->out, "%*saddress space, in no other figure: --mapped-files has its stacks\n",
	        r->options.verbose ? 4 : 15, "");
}
