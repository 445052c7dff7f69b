/* SPDX-License-Identifier: MIT */
/* What the outputs ask a finished report. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stats/compare.h"
#include "filter/fold.h"
#include "report/report.h"

static const char *const figure_names[] = { "live-bytes", "live-count", "allocated-bytes", "allocated-count" };

int report_figure_parse(const char *name)
{
	for (int i = 0; i < FIGURE_COUNT; i++)
		if (!strcmp(name, figure_names[i]))
			return i;
	return -1;
}

const char *report_figure_name(enum report_figure figure)
{
	return figure_names[figure];
}

const char *report_python_version(uint32_t v, char text[PYTHON_VERSION_TEXT])
{
	static const char *const levels[16] = { [0xa] = "a", [0xb] = "b", [0xc] = "rc" };
	const char *level = levels[v >> 4 & 15];
	int n = snprintf(text, PYTHON_VERSION_TEXT, "%u.%u.%u", v >> 24, v >> 16 & 255, v >> 8 & 255);

	if (level)
		snprintf(text + n, PYTHON_VERSION_TEXT - (size_t)n, "%s%u", level, v & 15);
	return text;
}

size_t report_shown(const struct report *r)
{
	size_t n = r->options.by == BY_STACK ? r->rows.count : r->groups.count;

	if (groups_class(r->options.by))
		return n; /* in their order: the first ones say little */
	return r->options.top && r->options.top < n ? r->options.top : n;
}

size_t report_listed(const struct report *r)
{
	size_t shown = report_shown(r), n = 0;

	while (n < shown && n < r->rows.count && r->rows.list[n].sum[r->options.sort].samples)
		n++;
	return n;
}

size_t report_depth(const struct report *r, const struct report_row *row)
{
	if (!r->options.depth || r->options.depth >= row->frame_count)
		return row->frame_count;
	size_t end = report_own(r, row).frame + r->options.depth;
	return end < row->frame_count ? end : row->frame_count;
}

/* One row has few places that no row before had, which would be asked for few at a time. */
void report_want_symbols(const struct report *r, size_t row, size_t count)
{
	for (size_t i = row; r->symbols && row % REPORT_AHEAD == 0 && i < count && i < row + REPORT_AHEAD; i++)
		symbols_want(r->symbols, r->rows.list[i].frames, r->rows.list[i].frame_count);
}

bool report_compares(const struct report *r)
{
	return r->options.diff || r->options.since_ns;
}

double report_lost_weight(const struct report *r, enum report_figure figure, uint64_t lost)
{
	enum report_figure allocated = report_is_bytes(figure) ? FIGURE_ALLOCATED_BYTES : FIGURE_ALLOCATED_COUNT;
	const struct estimate_sum *all = &r->unfiltered.sum[allocated]; /* they may be of what is kept or not */

	if (!all->samples && r->total.change)
		all = &r->total.change->old[allocated];
	return lost && all->samples ? (double)lost * all->value / (double)all->samples : 0;
}

bool report_has_unassigned(const struct report *r)
{
	return !r->options.filter.focus && !r->options.filter.show_from;
}

uint64_t report_total_lacks(const struct report *r)
{
	return report_has_unassigned(r) ? 0 : r->lost_stack;
}

/* Samples that the row may lack, of which nothing is known. */
static uint64_t missing(const struct report *r, const struct report_row *row, bool live)
{
	uint64_t without = row->unknown || row == &r->unfiltered ? 0
	                   : row == &r->total                    ? report_total_lacks(r)
	                                                         : r->lost_stack;

	return r->lost_busy + without + (live ? r->lost_unknown : 0);
}

enum trust_value report_trust(const struct report *r, enum report_figure figure)
{
	return (report_is_live(figure) ? r->trust.live : r->trust.allocated).value;
}

/* part: of the error of the lower end (estimate.h). */
static struct estimate interval(const struct report *r, const struct estimate_sum *sum, enum report_figure figure,
                                double confidence, double part)
{
	struct estimate x = estimate_interval_listed(sum, confidence, part > 0 ? part : 1);

	x.exact = x.exact && report_trust(r, figure) == TRUST_MEASURED && !(report_is_bytes(figure) && r->rounded);
	return x;
}

struct estimate report_interval(const struct report *r, const struct estimate_sum *sum, enum report_figure figure)
{
	return interval(r, sum, figure, r->options.confidence, 1);
}

static bool is_listed(const struct report *r, const struct report_row *row)
{
	return r->options.by == BY_STACK && r->rows.count && row >= r->rows.list && row < r->rows.list + r->rows.count;
}

/* The rows of stacks that are shown are those that their estimates chose. Where few are shown, few are asked about. */
static double listed_part(const struct report *r, const struct report_row *row, bool live)
{
	if (!is_listed(r, row))
		return row->part[!live];
	double *part = &r->rows.list[row - r->rows.list].part[!live];
	if (!(*part > 0))
		*part = estimate_listed_share(&row->sum[live ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES],
		                              r->options.confidence, r->listed_whole[!live]);
	return *part;
}

static struct estimate estimate_row(const struct report *r, const struct report_row *row, enum report_figure figure,
                                    double confidence)
{
	bool live = report_is_live(figure);
	struct estimate x = interval(r, &row->sum[figure], figure, confidence, listed_part(r, row, live));

	if (live && row->lost[figure].samples) {
		struct estimate_sum all = row->sum[figure];
		estimate_merge(&all, &row->lost[figure]);
		x.high = estimate_interval(&all, confidence).high;
	}
	x.high += report_lost_weight(r, figure, missing(r, row, live));
	return x;
}

struct estimate report_estimate(const struct report *r, const struct report_row *row, enum report_figure figure)
{
	return estimate_row(r, row, figure, r->options.confidence);
}

const struct location *report_locations(const struct report *r, uint64_t place, size_t *count)
{
	return filter_locations(&r->filter, place, count);
}

static bool starts(const struct report *r, uint64_t place)
{
	const struct image *image = &r->images.list[PLACE_IMAGE(place)];
	size_t n;

	if (image->language)
		return false;
	const struct location *list = report_locations(r, place, &n);

	for (size_t i = 0; i < n; i++) {
		/* Of a library without symbols: the C++ library has one function that calls a thread's. */
		bool unknown = !list[i].function && image->path && !strncmp(image_name(image), "libstdc++.so", 12);
		if (!unknown && !fold_is_startup(list[i].function))
			return false;
	}
	return true;
}

size_t report_inner(const struct report *r, const struct report_row *row)
{
	size_t n = row->frame_count;

	while (!r->options.show_std && r->symbols && n > 1 && starts(r, row->frames[n - 1]))
		n--;
	return n;
}

struct estimate report_at_moment(const struct report *r, const struct estimate_sum *sum, bool live)
{
	enum report_figure f = live ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES;
	struct report_row row = { .unknown = report_has_unassigned(r) };
	double error = 1 - r->options.confidence;

	row.sum[f] = *sum;
	memcpy(row.lost, r->total.lost, sizeof row.lost);
	/* Each of the moments may miss with its part of the error. */
	return estimate_row(r, &row, f, live ? 1 - error / (double)r->timeline.count : 1 - error);
}

struct estimate report_highest(const struct report *r)
{
	struct estimate most = { 0 };

	for (size_t i = 0; i < r->timeline.count; i++) {
		struct estimate x = report_at_moment(r, &r->timeline.points[i].live, true);
		most.exact = x.exact;
		most.value = fmax(most.value, x.value);
		most.low = fmax(most.low, x.low);
		most.high = fmax(most.high, x.high);
	}
	return most;
}

struct report_row report_group(const struct group *g, bool own)
{
	struct report_row row = { .slack = own ? g->slack_exclusive : g->slack_inclusive };

	memcpy(row.sum, own ? g->exclusive : g->inclusive, sizeof row.sum);
	memcpy(row.lost, own ? g->lost_exclusive : g->lost_inclusive, sizeof row.lost);
	if (own)
		memcpy(row.part, g->part, sizeof row.part);
	return row;
}

struct report_row report_thread(const struct report *r, const struct group *g)
{
	struct report_row row = { .slack = g->slack_inclusive, .unknown = report_has_unassigned(r) };

	memcpy(row.lost, r->total.lost, sizeof row.lost); /* it may be all of it */
	memcpy(row.part, g->part, sizeof row.part);

	for (int f = 0; f < FIGURE_COUNT; f++)
		row.sum[f] = g->inclusive[f];
	return row;
}

struct estimate report_growth(const struct report *r, const struct report_row *row, enum report_figure figure)
{
	const struct estimate_sum *plus = &row->change->plus[figure], *minus = &row->change->minus[figure];
	struct estimate x = compare_interval(plus, minus, r->options.confidence);

	if (r->growth_tail > 0 && is_listed(r, row))
		x.low = fmin(x.low, compare_low(plus, minus, r->growth_tail));
	x.high += (report_is_live(figure) ? row->lost[figure].value : 0) +
	          report_lost_weight(r, figure, missing(r, row, report_is_live(figure)));
	x.low -= report_lost_weight(r, figure, r->lost_before);
	x.exact = x.exact && report_trust(r, figure) == TRUST_MEASURED;
	return x;
}

bool report_has_pace(const struct report *r)
{
	return r->options.diff && r->session_count == 2 && !r->same_session && r->sessions[0].duration_ns &&
	       r->sessions[1].duration_ns;
}

struct report_pace report_pace(const struct report *r, bool old)
{
	const struct recorded_session *s = &r->sessions[old];
	const struct estimate_sum *sum = &r->total.change->old[FIGURE_LIVE_BYTES];
	struct report_pace pace = { .seconds = (double)s->duration_ns / 1e9,
		                    .live = old ? report_interval(r, sum, FIGURE_LIVE_BYTES)
		                                : report_estimate(r, &r->total, FIGURE_LIVE_BYTES),
		                    .private_start_bytes = s->private_start_bytes,
		                    .private_latest_bytes = s->private_latest_bytes };

	if (old)
		pace.live.high += report_lost_weight(r, FIGURE_LIVE_BYTES, r->lost_before);
	pace.live.value /= pace.seconds;
	pace.live.error /= pace.seconds;
	pace.live.low /= pace.seconds;
	pace.live.high /= pace.seconds;
	return pace;
}

double report_decides_after(const struct report *r, const struct report_row *row)
{
	double longest = 0;

	for (size_t i = 0; i < r->session_count; i++)
		longest = fmax(longest, (double)r->sessions[i].duration_ns / 1e9);
	return longest * leak_decides_after(row->leak, r->options.confidence);
}

struct estimate report_leak_rate(const struct report *r, const struct report_row *row)
{
	struct estimate x = report_interval(r, &row->leak->bytes, FIGURE_LIVE_BYTES);
	const double part = r->old_seconds > 0 ? 1 / r->old_seconds : 0;

	x.value *= part;
	x.error *= part;
	x.low *= part;
	x.high *= part;
	return x;
}

/* Rows are sorted by the figure. */
bool report_first_is_largest(const struct report *r, enum report_figure f)
{
	const struct report_row *rows = r->rows.list;

	if (!r->rows.count || !rows[0].sum[f].samples)
		return false;
	return r->rows.count == 1 || compare_interval(&rows[0].sum[f], &rows[1].sum[f], r->options.confidence).low > 0;
}

double report_share(const struct report *r, const struct report_row *row, enum report_figure figure)
{
	double all = r->total.sum[figure].value;

	return all > 0 ? row->sum[figure].value / all : 0;
}

/* What an allocator adds to the smallest blocks, at most: glibc's have 24 usable bytes. */
#define SLACK_MOST_BYTES 23

static double part_of(double x, double rest)
{
	return x + rest > 0 ? x / (x + rest) : 0;
}

struct estimate report_share_interval(const struct report *r, const struct report_row *row, enum report_figure f)
{
	const struct estimate_sum *all = &r->total.sum[f], *sum = &row->sum[f];
	struct estimate x = report_estimate(r, row, f);
	struct report_row rest = { .unknown = row->unknown };

	memcpy(rest.lost, r->total.lost, sizeof rest.lost);
	rest.sum[f] = (struct estimate_sum){ .value = fmax(0, all->value - sum->value),
		                             .variance = fmax(0, all->variance - sum->variance),
		                             .seen = fmax(0, all->seen - sum->seen),
		                             .next = all->next,
		                             .samples = all->samples - sum->samples,
		                             .hidden = all->hidden };
	struct estimate y = report_estimate(r, &rest, f);
	return (struct estimate){ .value = report_share(r, row, f),
		                  .low = part_of(x.low, y.high),
		                  .high = part_of(x.high, y.low),
		                  .exact = x.exact && y.exact };
}

struct estimate report_slack(const struct report *r, const struct slack *slack)
{
	struct estimate x = report_interval(r, &slack->sum, FIGURE_LIVE_BYTES);
	bool smaller = r->largest_rate > 1 && slack->smallest > 1;

	x.unseen = smaller ? SLACK_MOST_BYTES * estimate_detection_limit(1 / estimate_probability(1, r->largest_rate),
	                                                                 r->options.confidence)
	                   : 0;
	return x;
}

double report_detection_limit(const struct report *r)
{
	return r->largest_rate > 1 ? estimate_detection_limit((double)r->largest_rate, r->options.confidence) : 0;
}

unsigned report_hidden_bytes(const struct report *r)
{
	return r->largest_rate > 1 ? ESTIMATE_HIDDEN_BYTES : 0;
}

double report_unseen_blocks(const struct report *r)
{
	return r->largest_rate > 1
	               ? estimate_unseen_blocks(1 / estimate_probability(ESTIMATE_HIDDEN_BYTES, r->largest_rate),
	                                        r->options.confidence)
	               : 0;
}

uint64_t report_lost(const struct report *r)
{
	return r->lost_busy + r->lost_live;
}

uint64_t report_counter(const struct report *r, enum dump_counter counter)
{
	uint64_t sum = 0;

	/* Of a pair, the newer one comes first. */
	for (size_t i = 0; i < (r->options.diff ? r->session_count > 0 : r->session_count); i++)
		sum += r->sessions[i].counters[counter];
	return sum;
}

uint64_t report_skipped(const struct report *r, enum dump_skip reason)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->session_count; i++)
		sum += r->sessions[i].skipped[reason];
	return sum;
}

bool report_complete(const struct report *r)
{
	return r->whole && !report_lost(r) && !r->lost_stack && !r->lost_before && !r->past_unknown;
}

bool report_exact(const struct report *r)
{
	return r->largest_rate <= 1 && report_complete(r) && !r->rounded &&
	       report_trust(r, FIGURE_LIVE_BYTES) == TRUST_MEASURED &&
	       report_trust(r, FIGURE_ALLOCATED_BYTES) == TRUST_MEASURED;
}
