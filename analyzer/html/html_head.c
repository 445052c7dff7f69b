/* SPDX-License-Identifier: MIT */
#include "html/html_head.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "html/html_capture.h"
#include "html/html_leaks.h"
#include "html/html_table.h"
#include "output/frame_name.h"
#include "stats/gamma.h"
#include "json/json_view.h"
#include "text/report_text.h"
#include "text/text.h"
#include "version.h"
#include "report/unseen.h"

#define TEXT_ROWS 20u
#define LEAKS_PART 4u     /* of the bytes of a grouping is for leaks */
#define USAGE_POINTS 300u /* moments at which it is told what was resident */
#define RATES_MAX 500u    /* changes of the rate; a dump may claim any number */

/* One of the parts that take nothing else. */
static int put_part(struct json *j, const char *name, const struct report *r, void (*part)(const struct text *))
{
	struct html_capture c;

	if (!html_capture_begin(&c, r))
		return -ENOMEM;
	part(&c.put);
	return html_capture_put(&c, name, j);
}

static void put_facts(const struct text *t)
{
	text_facts(t);
}

static void put_resident(const struct text *t)
{
	(void)text_resident(t);
}

static int put_texts(struct json *j, const struct report *r, const char *name)
{
	struct name_text buffer = { 0 };
	const char *clean = frame_name_clean(&buffer, name);
	struct html_capture c;
	int s = clean && html_capture_begin(&c, r) ? 0 : -ENOMEM;

	if (!s) {
		json_string(j, "name", clean);
		text_head(&c.put, clean);
		s = html_capture_put(&c, "target", j);
	}
	frame_name_done(&buffer);
	if (!s && (r->session_count != 1 || r->options.at_ns || r->options.since_ns))
		s = put_part(j, "sessions", r, text_sessions);
	s = s ?: put_part(j, "verdict", r, text_verdict);
	s = s ?: put_part(j, "trust", r, text_trust);
	s = s ?: put_part(j, "warnings", r, text_warnings);
	if (!s && r->resident.known && !filter_any(&r->options.filter))
		s = put_part(j, "resident", r, put_resident);
	s = s ?: put_part(j, "filter", r, text_filter);
	s = s ?: put_part(j, "seen", r, text_seen);
	return s ?: put_part(j, "facts", r, put_facts);
}

static void put_estimate(struct json *j, const char *name, struct estimate x)
{
	json_object_line(j, name);
	json_interval(j, &x);
	json_number(j, "unseen", x.unseen);
	json_object_end(j);
}

double html_quantile(double level)
{
	return level > 0 && level < 1 ? -stats_normal_quantile(level / 2) : 0;
}

/* What intervals of any part of the report are made of, beside its own sums. */
static void put_figures(struct json *j, const struct report *r)
{
	json_array(j, "figures");
	for (int f = 0; f < FIGURE_COUNT; f++) {
		json_object_line(j, NULL);
		json_string(j, "title", text_title(f));
		json_string(j, "key", report_figure_name(f));
		json_string(j, "trust", trust_value_name(report_trust(r, f)));
		json_number(j, "next", r->total.sum[f].next);
		json_number(j, "hidden", r->total.sum[f].hidden);
		json_number(j, "lostWeight", report_lost_weight(r, f, 1));
		json_unsigned(j, "samples", r->total.sum[f].samples);
		put_estimate(j, "total", report_estimate(r, &r->total, f));
		if (report_compares(r)) {
			json_estimate(j, "old", r->total.change->old[f].value);
			put_estimate(j, "growth", report_growth(r, &r->total, f));
			json_number(j, "oldNext", r->total.change->minus[f].next);
			json_number(j, "oldHidden", r->total.change->minus[f].hidden);
		}
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_timeline(struct json *j, const struct report *r)
{
	json_array(j, "timeline");
	for (size_t i = 0; i < r->timeline.count; i++) {
		const struct timeline_point *point = &r->timeline.points[i];
		const struct estimate figures[] = { report_at_moment(r, &point->live, true),
			                            report_at_moment(r, &point->allocated, false) };
		json_array_line(j, NULL);
		json_estimate(j, NULL, (double)point->ns / 1e9);
		for (int k = 0; k < 2; k++) {
			json_estimate(j, NULL, round(figures[k].value));
			json_estimate(j, NULL, round(figures[k].low));
			json_estimate(j, NULL, round(figures[k].high));
		}
		json_unsigned(j, NULL, point->incomplete);
		json_array_end(j);
	}
	json_array_end(j);
	const struct recorded_session *s = r->session_count == 1 ? &r->sessions[0] : NULL;
	if (r->timeline.count && !r->options.files && s && s->private_start_bytes && s->private_latest_bytes) {
		json_array_line(j, "private");
		json_estimate(j, NULL, (double)s->private_start_bytes);
		json_estimate(j, NULL, (double)s->private_latest_bytes);
		json_array_end(j);
	}
	/* When the distance of samples changed, and to what. */
	json_array(j, "rates");
	size_t rates = r->timeline.count && r->session_count == 1 ? r->sessions[0].rate_count : 0;
	for (size_t i = 0; i < rates && i < RATES_MAX; i++) {
		json_array_line(j, NULL);
		json_estimate(j, NULL, r->sessions[0].rates[i].seconds);
		json_unsigned(j, NULL, r->sessions[0].rates[i].new_bytes);
		json_array_end(j);
	}
	json_array_end(j);
}

/* "usage": names of the kinds that there are, and of each moment its second, whether kinds are told apart, all that
 * is resident, and each kind. */
static void put_usage(struct json *j, const struct usage *usage)
{
	bool there[DUMP_MEMORY_KINDS] = { false };

	if (!usage->count)
		return;
	for (size_t i = 0; i < usage->count; i++)
		for (int k = 1; k < DUMP_MEMORY_KINDS; k++)
			there[k] |= usage->list[i].is_look && usage->list[i].parts[k] > 0;
	json_array_line(j, "usage");
	json_array(j, NULL);
	for (int k = 1; k < DUMP_MEMORY_KINDS; k++)
		if (there[k])
			json_string(j, NULL, resident_kind_name((enum dump_memory_kind)k));
	json_array_end(j);
	json_array(j, NULL);
	for (size_t i = 0; i < usage->count; i++) {
		const struct usage_point *point = &usage->list[i];
		if (!usage_shows(usage, i, USAGE_POINTS))
			continue;
		json_array_line(j, NULL);
		json_estimate(j, NULL, point->seconds);
		json_unsigned(j, NULL, point->is_look);
		json_estimate(j, NULL, point->rss);
		for (int k = 1; k < DUMP_MEMORY_KINDS && point->is_look; k++)
			if (there[k])
				json_estimate(j, NULL, point->parts[k]);
		json_array_end(j);
	}
	json_array_end(j);
	json_array_end(j);
}

/* Of one session, in seconds as the clock on the wall here counts them. */
static void put_start(struct json *j, const struct report *r)
{
	time_t seconds = r->session_count == 1 ? (time_t)(r->sessions[0].start_ns / 1000000000u) : 0;
	struct tm tm;

	if (seconds && localtime_r(&seconds, &tm))
		json_number(j, "start", (double)seconds + (double)tm.tm_gmtoff);
}

int html_head(const struct report *r, const char *name, size_t table, const char *warning, struct json *j)
{
	json_object(j, NULL);
	json_string(j, "version", MEMATTACH_VERSION);
	json_number(j, "confidence", r->options.confidence);
	json_number(j, "quantile", html_quantile(1 - r->options.confidence));
	json_unsigned(j, "sort", r->options.sort);
	json_bool(j, "compares", report_compares(r));
	json_number(j, "sides", (double)r->rate_now / (double)unseen_rate_before(r));
	json_bool(j, "complete", report_complete(r));
	json_string(j, "noWidth", text_all_measured(r) ? TEXT_EXACT : TEXT_COUNTED);
	json_bool(j, "doubtful", trust_live_doubtful(&r->trust));
	json_number(j, "limit", report_detection_limit(r));
	json_unsigned(j, "lostBusy", r->lost_busy);
	json_unsigned(j, "lostLive", r->lost_unknown);
	json_unsigned(j, "lostStack", r->lost_stack);
	json_unsigned(j, "lostTotal", report_total_lacks(r));
	json_unsigned(j, "lostBefore", r->lost_before);
	json_unsigned(j, "stacks", r->rows.count);
	put_start(j, r);
	if (warning)
		json_string(j, "changed", warning);
	if (r->options.at_ns)
		json_number(j, "at", (double)r->options.at_ns / 1e9);
	put_figures(j, r);
	put_timeline(j, r);
	put_usage(j, &r->usage);
	int s = put_texts(j, r, name);
	s = s ?: html_table(r, table, j);
	s = s ?: html_leaks(r, table / LEAKS_PART, j);
	if (!s)
		json_object_end(j);
	return s;
}

char *html_text(const struct report *r, const char *name)
{
	struct report few = *r;
	struct html_capture c;

	few.options.top = TEXT_ROWS;
	few.options.verbose = false;
	if (r->options.processes) {
		few.options.by = BY_PROCESS;
		few.groups = r->session_groups[0];
	}
	if (!html_capture_begin(&c, &few))
		return NULL;
	report_text(&few, name, c.out, (struct text_style){ 0 });
	return html_capture_end(&c);
}
