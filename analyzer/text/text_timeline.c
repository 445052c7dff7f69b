/* SPDX-License-Identifier: MIT */
/* The timeline of the text report: a line of the estimates, and a table in which the interval is drawn. */
#include <math.h>

#include "base/size.h"
#include "text/text.h"

#define BAND_COLUMNS 40
#define SPARK_MAX 80 /* columns; of more moments, the largest of those that share one */

static const char *const sparks[] = { "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588" };
#define SPARKS (sizeof sparks / sizeof sparks[0])

static void put_spark(const struct text *t)
{
	const struct timeline *line = &t->report->timeline;
	size_t columns = line->count < SPARK_MAX ? line->count : SPARK_MAX;
	struct estimate highest = report_highest(t->report);
	double most = highest.value;
	char text[96];

	fprintf(t->out, "\n  %slive bytes%s ", t->dim, t->plain);
	for (size_t c = 0; c < columns; c++) {
		double value = 0;
		for (size_t i = c * line->count / columns; i < (c + 1) * line->count / columns; i++)
			value = fmax(value, line->points[i].live.value);
		size_t level = most > 0 ? (size_t)(value / most * (double)SPARKS) : 0;
		fputs(sparks[level < SPARKS ? level : SPARKS - 1], t->out);
	}
	fprintf(t->out, "\n  %shighest:%s   %s\n\n", t->dim, t->plain,
	        highest.low < highest.high ? text_interval(FIGURE_LIVE_BYTES, &highest, text)
	                                   : size_format(most, text));
}

/* Full up to the lower end of the interval, lighter up to the upper one. */
static void put_band(const struct text *t, const struct estimate *x, double most)
{
	double column = most > 0 ? BAND_COLUMNS / most : 0;
	int low = (int)(x->low * column);
	int high = (int)ceil(x->high * column);

	for (int i = 0; i < high && i < BAND_COLUMNS; i++)
		fputs(i < low ? "\u2588" : "\u2591", t->out);
	putc('\n', t->out);
}

void text_timeline(const struct text *t)
{
	const struct report *r = t->report;
	const struct timeline *line = &r->timeline;
	double most = report_highest(r).high;
	char value[40], range[96], rate[40];
	uint64_t before = 0;
	bool incomplete = false;

	put_spark(t);
	fprintf(t->out, "  %s%10s  %10s  %-24s %12s  %s%s\n", t->dim, "time", "live", "interval", "allocated",
	        "live, interval", t->plain);
	for (size_t i = 0; i < line->count; i++) {
		const struct timeline_point *point = &line->points[i];
		struct estimate x = report_at_moment(r, &point->live, true);
		double seconds = (double)(point->ns - before) / 1e9;
		progress_at(r->options.progress, "writing", i, line->count);
		fprintf(t->out, "  %8.9g s  %10s  %-24s %10s/s  ", (double)point->ns / 1e9, size_format(x.value, value),
		        text_interval(FIGURE_LIVE_BYTES, &x, range),
		        size_format(seconds > 0 ? point->allocated.value / seconds : 0, rate));
		put_band(t, &x, most);
		before = point->ns;
		incomplete = incomplete || point->incomplete;
	}
	putc('\n', t->out);
	if (incomplete)
		text_warning(t, "INCOMPLETE",
		             "the history has dropped what was freed early: before that, live and allocated bytes are "
		             "too low");
}
