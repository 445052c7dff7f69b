/* SPDX-License-Identifier: MIT */
/* The first sentence of a report about growth. */
#include "base/size.h"
#include "text/text.h"

/* Between the two times that are compared; 0: not known, or of two sessions. */
static double seconds_between(const struct report *r)
{
	return r->options.diff ? 0 : text_seconds(r) - (double)r->options.since_ns / 1e9;
}

/* " (low .. high, 95 % sure), 2.96 MiB/s" */
static void put_growth(const struct text *t, enum report_figure f, const struct estimate *x)
{
	double seconds = seconds_between(t->report);
	char range[96], rate[40];

	fprintf(t->out, " (%s", text_interval(f, x, range));
	if (x->low < x->high)
		fprintf(t->out, ", %g %% sure", 100 * t->report->options.confidence);
	putc(')', t->out);
	if (seconds > 0 && report_is_bytes(f) && x->low > 0)
		fprintf(t->out, ", %s/s", size_format(x->value / seconds, rate));
}

/* The stack whose growth is more than chance explains, and is known to be the most; by the lower ends of the rows. */
static void put_grower(const struct text *t, enum report_figure f)
{
	const struct report *r = t->report;
	const struct report_row *row = r->rows.list;
	char value[40];

	if (!r->rows.count || !row->grown || !row->frame_count)
		return;
	struct estimate x = report_growth(r, row, f);
	if (text_owner(t, "one of the stacks that grew most, of ", row))
		fprintf(t->out, ", by about %s", text_amount(f, x.value, value));
}

void text_growth_verdict(const struct text *t)
{
	const struct report *r = t->report;
	enum report_figure f = r->options.sort;
	struct estimate x = report_growth(r, &r->total, f);
	bool doubtful = report_is_live(f) && trust_live_doubtful(&r->trust);
	bool more = x.low > 0, less = x.high < 0;
	char value[40];

	fprintf(t->out, "%s%s %s ", report_is_live(f) ? "Live " : "Allocated ", report_is_bytes(f) ? "bytes" : "blocks",
	        more && doubtful ? "may have grown"
	        : more           ? "grew"
	        : less           ? "shrank"
	                         : "did not change by more than chance explains:");
	fprintf(t->out, "%s%s", more || less ? "by about " : "about ",
	        text_amount(f, more || !less ? x.value : -x.value, value));
	put_growth(t, f, &x);
	put_grower(t, f);
	fprintf(t->out, "%s.\n", doubtful ? "; blocks that count as live may have been freed unseen" : "");
}
