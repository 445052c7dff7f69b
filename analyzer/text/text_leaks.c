/* SPDX-License-Identifier: MIT */
/* What leaks: the first sentence, and the rows of --leaks. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "filter/fold.h"
#include "stats/leaks.h"
#include "text/text.h"

#define UNLIKELY 0.01
#define RATE_TEXT 120u

/* "2.06 MiB/s (1.85 MiB/s .. 2.29 MiB/s" */
static const char *rate_text(const struct text *t, const struct report_row *row, const char *between,
                             char text[RATE_TEXT])
{
	struct estimate x = report_leak_rate(t->report, row);
	char value[40], low[40], high[40];
	int used = snprintf(text, RATE_TEXT, "%s/s", size_format(x.value, value));

	if (x.low < x.high)
		snprintf(text + used, RATE_TEXT - (size_t)used, "%s%s/s .. %s/s", between, size_format(x.low, low),
		         size_format(x.high, high));
	return text;
}

/* Who it is, how fast, and how much there is of it. */
static void put_first(const struct text *t, bool only, const struct report_row *row)
{
	struct estimate x = report_interval(t->report, &row->leak->bytes, FIGURE_LIVE_BYTES);
	char value[40], rate[RATE_TEXT];

	if (!row->frame_count || !text_owner(t, only ? "it is that of " : "the first, of ", row))
		fputs(only ? "" : "; the first", t->out);
	fprintf(t->out, ", by about %s", rate_text(t, row, " (", rate));
	if (strchr(rate, '('))
		fprintf(t->out, ", %g %% sure)", 100 * t->report->options.confidence);
	if (t->report->session_count > 1)
		fprintf(t->out, " on average of %zu sessions", t->report->session_count);
	fprintf(t->out, ", with %s in old blocks", size_format(x.value, value));
}

void text_leaks_verdict(const struct text *t, const struct report_row *first)
{
	const struct report *r = t->report;
	size_t leaks = 0, grow = 0;
	char number[40];

	for (size_t i = 0; i < r->rows.count; i++) {
		leaks += r->rows.list[i].grown;
		grow += r->rows.list[i].grows && !r->rows.list[i].grown;
	}
	if (leaks) {
		fprintf(t->out, "%s %s", text_grouped((double)leaks, number),
		        text_plural((double)leaks, "stack leaks", "stacks leak"));
		if (first && first->grown)
			put_first(t, leaks == 1, first);
	} else if (trust_live_doubtful(&r->trust)) {
		fputs("Frees are not seen: whether anything leaks is not known", t->out);
	} else {
		fputs("No stack leaks for certain", t->out);
	}
	if (grow)
		fprintf(t->out, ";\n%s %s, and may", text_grouped((double)grow, number),
		        text_plural((double)grow, "stack grows", "stacks grow"));
	fputs(".\n", t->out);
}

/* What grows may be a leak: what would tell. */
static void put_growing(const struct text *t, const struct report_row *row)
{
	double seconds = report_decides_after(t->report, row);

	fprintf(t->out, "%sgrows%s", t->warn, t->plain);
	if (row->collected)
		fputs("; may be garbage that V8 has yet to collect", t->out);
	else if (leak_shape(row->leak) == LEAK_FILLING)
		fputs(", more and more slowly: as a cache that fills", t->out);
	else if (isfinite(seconds))
		fprintf(t->out, "; a session of %.3g s tells if it is a leak", seconds);
	else
		fputs("; too few to tell if it is a leak", t->out);
}

/* Code that is compiled while the program runs is compiled anew at times, and what it allocates then has another stack.
 */
static bool code_moves(const struct report *r, const struct report_row *row)
{
	for (size_t i = 0; i < row->frame_count; i++) {
		size_t count;
		const struct location *list = report_locations(r, row->frames[i], &count);
		for (size_t k = 0; k < count; k++) {
			const char *run = fold_run(list[k].function, list[k].file);
			if (run && (!strcmp(run, "[jit]") || !strcmp(run, "v8::")))
				return true;
		}
	}
	return false;
}

void text_leak_called(const struct text *t, const struct report_row *row)
{
	const enum leak_verdict shape = leak_shape(row->leak);

	if (row->grown)
		fprintf(t->out, "%sLEAK%s", t->warn, t->plain);
	else if (row->grows)
		put_growing(t, row);
	else if (row->doubtful && shape != LEAK_NONE)
		fputs("no verdict: frees are missed", t->out);
	else if (row->p_value < UNLIKELY && shape == LEAK_STEP)
		fprintf(t->out, "no leak%s: came in one go",
		        code_moves(t->report, row) ? ", unless its code was compiled anew" : "");
	else
		fputs("growth not distinguishable from zero", t->out);
}

void text_leak_row(const struct text *t, const struct report_row *row)
{
	const struct report *r = t->report;
	const struct leak_tally *k = row->leak;
	struct estimate x = report_interval(r, &k->bytes, FIGURE_LIVE_BYTES);
	struct estimate y = report_interval(r, &k->count, FIGURE_LIVE_COUNT);
	char value[40], range[96], rate[RATE_TEXT];

	fprintf(t->out, "%s%s%s  %s   ", t->bold, size_format(x.value, value), t->plain,
	        text_interval(FIGURE_LIVE_BYTES, &x, range));
	text_leak_called(t, row);
	fprintf(t->out, "   %" PRIu64 " %s\n      ", k->count.samples, text_samples(k->count.samples));
	if (row->grows)
		fprintf(t->out, "%s%s%s   ", t->bold, rate_text(t, row, "  ", rate), t->plain);
	fprintf(t->out, "%sin %s%s  %s%s\n", t->dim, text_grouped(y.value, value),
	        text_unit(FIGURE_LIVE_COUNT, y.value), text_interval(FIGURE_LIVE_COUNT, &y, range), t->plain);
	fprintf(t->out, "      %sin the later part %" PRIu64 " %s became old, %" PRIu64 " old %s freed%s\n", t->dim,
	        k->gained, text_samples(k->gained), k->lost, text_plural((double)k->lost, "one was", "ones were"),
	        t->plain);
}
