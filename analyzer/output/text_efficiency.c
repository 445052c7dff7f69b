/* SPDX-License-Identifier: MIT */
/* The section of --efficiency in the text report. */
#include <inttypes.h>
#include <math.h>

#include "size.h"
#include "text.h"

/* "1.5 to 2.9 KiB": the sizes of a group. */
static const char *group_sizes(const struct efficiency_group *g, char buffer[96])
{
	char least[40], most[40];

	snprintf(buffer, 96, "%s .. %s", size_format(ceil(g->least), least), size_format(ceil(g->most) - 1, most));
	return buffer;
}

static const char *chance(double p, char buffer[24])
{
	snprintf(buffer, 24, p < 0.001 ? "%.1e" : "%.4f", p);
	return buffer;
}

static void put_groups(const struct text *t, const struct efficiency_result *e)
{
	char sizes[96], allocated[40], survival[16], now[24], best[24];

	fprintf(t->out, "\n  %s%-26s %14s %10s %10s %10s%s\n", t->dim, "size", "allocated", "live", "sampled", "best",
	        t->plain);
	for (size_t i = 0; i < e->group_count; i++) {
		const struct efficiency_group *g = &e->groups[i];
		fprintf(t->out, "  %-26s %14s %10s %10s %10s\n", group_sizes(g, sizes),
		        text_grouped(g->allocated, allocated), text_percent(g->survival, survival), chance(g->now, now),
		        chance(g->best, best));
	}
}

void text_efficiency(const struct text *t)
{
	const struct report *r = t->report;
	const struct efficiency_result *e = &r->efficiency_result;
	double all = r->total.sum[FIGURE_LIVE_BYTES].value;
	char now[40], best[40], percent[16], better[16], samples[40], fewer[40];

	fputs("\nSampling efficiency: how well the live bytes are known\n\n", t->out);
	if (!r->efficiency_known) {
		fputs("  nothing to compare: no sampled block lives, or every allocation was recorded\n", t->out);
		return;
	}
	fprintf(t->out, "  as sampled            error %12s  %8s   from %s %s\n", size_format(e->error_now, now),
	        text_percent(e->error_now / all, percent), text_grouped(e->samples, samples),
	        text_plural(e->samples, "sample", "samples"));
	fprintf(t->out, "  best for their number error %12s  %8s   efficiency %s\n", size_format(e->error_best, best),
	        text_percent(e->error_best / all, better), text_percent(e->ratio, percent));
	fprintf(t->out, "  best for their error  error %12s  %8s   from %s %s\n", now,
	        text_percent(e->error_now / all, better), text_grouped(e->samples_best, fewer),
	        text_plural(e->samples_best, "sample", "samples"));
	put_groups(t, e);
	fputs("\nbest: the chances k size sqrt(live / allocated) by which as many samples know the live bytes best.\n",
	      t->out);
}
