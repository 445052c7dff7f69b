/* SPDX-License-Identifier: MIT */
#include "exchange/profile_comments.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/size.h"
#include "exchange/profile.h"
#include "text/text.h"
#include "version.h"

/* Where the lines go. */
struct lines {
	const struct report *report;
	profile_put_comment *put;
	void *to;
};

__attribute__((format(printf, 2, 3))) static void put(struct lines *p, const char *format, ...)
{
	char line[LINE_TEXT];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	p->put(p->to, line);
}

static void put_target(struct lines *p)
{
	const struct report *r = p->report;
	const struct recorded_session *s = r->session_count ? &r->sessions[0] : NULL;
	char size[SIZE_TEXT], more[48] = "";

	if (!s)
		return;
	if (r->session_count > 1)
		snprintf(more, sizeof more, " and %zu more", r->session_count - 1);
	if (r->largest_rate <= 1)
		put(p, "memanalyze " MEMATTACH_VERSION ": %s, PID %d on %s%s; every allocation recorded", s->command,
		    s->pid, s->host[0] ? s->host : "?", more);
	else
		put(p, "memanalyze " MEMATTACH_VERSION ": %s, PID %d on %s%s; one sample per %s", s->command, s->pid,
		    s->host[0] ? s->host : "?", more, size_format(profile_interval(r), size));
}

static void format_total(const struct lines *p, enum report_figure f, char *text, size_t size)
{
	const struct report *r = p->report;
	struct estimate x = report_compares(r) ? report_growth(r, &r->total, f) : report_estimate(r, &r->total, f);
	enum report_figure count = report_is_live(f) ? FIGURE_LIVE_COUNT : FIGURE_ALLOCATED_COUNT;
	uint64_t samples = r->total.sum[count].samples;
	char value[40], range[96], number[40];

	if (report_compares(r))
		samples = r->total.change->plus[count].samples + r->total.change->minus[count].samples;
	snprintf(text, size, "%s %s (%s), %s samples", text_title(f), text_amount(f, x.value, value),
	         text_interval(f, &x, range), text_grouped((double)samples, number));
}

/* The standard normal distribution has a share of confidence between -z and z. */
static double stats_normal_quantile(double confidence)
{
	double low = 0, high = 40;

	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;
		if (erf(middle / sqrt(2)) < confidence)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void put_totals(struct lines *p)
{
	const struct report *r = p->report;
	char live[256], allocated[256];

	format_total(p, FIGURE_LIVE_BYTES, live, sizeof live);
	format_total(p, FIGURE_ALLOCATED_BYTES, allocated, sizeof allocated);
	put(p, "%s%s; %s; intervals of %g %%", report_compares(r) ? "growth: " : "", live, allocated,
	    100 * r->options.confidence);
	double z = stats_normal_quantile(r->options.confidence);
	/* Alike blocks are the worst case; the second part is the bias of the first one where samples are few. */
	if (r->largest_rate > 1 && !report_compares(r))
		put(p,
		    "the bytes of a node with n samples (alloc_samples, inuse_samples) are known to about %.0f/sqrt(n) "
		    "+ "
		    "%.0f/n %%; numbers of objects are known less well",
		    100 * z, 50 * z * z);
	if (report_compares(r))
		put(p, "alloc_samples and inuse_samples are those that came and those that went; whether a growth is "
		       "more than chance: memanalyze --diff, --since");
}

static void put_worth(struct lines *p, const char *what, const struct trust_part *part)
{
	static const char *const worth[] = { [TRUST_UPPER_BOUND] = "an upper bound",
		                             [TRUST_LOWER_BOUND] = "a lower bound",
		                             [TRUST_UNKNOWN] = "unknown" };
	char line[LINE_TEXT];

	if (part->value == TRUST_MEASURED)
		return;
	for (int i = 0; i < TRUST_REASON_COUNT; i++)
		if (part->reasons & 1u << i)
			put(p, "%s figures are %s: %s", what, worth[part->value],
			    text_trust_reason(p->report, i, line));
}

static void put_filter(struct lines *p)
{
	const struct report *r = p->report;
	enum report_figure f = r->options.sort;
	double kept = r->total.sum[f].value, all = r->unfiltered.sum[f].value;
	char line[LINE_TEXT], a[40], b[40], share[16];

	if (!filter_any(&r->options.filter) && !r->options.filter.hide)
		return;
	text_filter_options(&r->options.filter, line);
	put(p, "filter: %s", line);
	if (filter_any(&r->options.filter))
		put(p, "kept %s of %s %s (%s)", text_amount(f, kept, a), text_amount(f, all, b), text_title(f),
		    text_percent(all > 0 ? kept / all : 0, share));
	if (text_unassigned(r, line))
		put(p, "not assigned: %s", line);
}

void profile_comments(const struct report *r, profile_put_comment *put_one, void *to)
{
	struct lines *p = &(struct lines){ r, put_one, to };

	put_target(p);
	if (r->options.files)
		put(p, "mappings of files: address space, no memory");
	put_filter(p);
	put_totals(p);
	put_worth(p, "live", &r->trust.live);
	put_worth(p, "allocated", &r->trust.allocated);
	if (!r->whole)
		put(p, "the dump is damaged: this is what could be read of it");
	if (report_lost(r) || r->lost_before)
		put(p, "%llu samples were lost: figures are too low",
		    (unsigned long long)(report_lost(r) + r->lost_before));
	if (r->stack_threads.full)
		put(p, "there are too many threads and stacks for labels of threads");
	if (r->past_unknown)
		put(p, "the history does not reach back far enough: figures of the past are too low");
}
