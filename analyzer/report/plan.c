/* SPDX-License-Identifier: MIT */
/*
 * What --plan says: the row's sums are imagined as they would be on average at another rate, or after a longer time,
 * and the interval of those is taken. So it has all that an interval allows for, as it will be then. Each sample says
 * what blocks of its size would add to the variance (input/rows.h): where sizes are spread, a few large blocks have
 * most of it at a large rate, and next to nothing at a smaller one.
 */
#include "report/report.h"

#include <math.h>

#define STEPS 16
#define TIME_MAX 1e12

/* How a row was sampled. */
struct scene {
	const struct estimate_sum *sum;
	const struct row_plan *plan;
	double smallest; /* size of a block */
	double rate;
	double confidence;
	double whole; /* of all rows, at the rate of the session and in its time */
};

/* Between two powers of two a power of the rate. */
static double at_rate(const double *list, double rate)
{
	double place = fmin(log2(fmax(rate, 1)), PLAN_RATES - 1.001);
	int k = (int)place;
	double part = place - k;

	return list[k] > 0 && list[k + 1] > 0 ? pow(list[k], 1 - part) * pow(list[k + 1], part)
	                                      : list[k] + (list[k + 1] - list[k]) * part;
}

/* What has no record is like what has one. */
static struct estimate_sum imagine(const struct scene *s, double rate, double time)
{
	const struct estimate_sum *sum = s->sum;
	double all = s->plan->value > 0 ? sum->value / s->plan->value * time : 0;
	bool counts = sum->hidden > 0;

	return (struct estimate_sum){
		.value = sum->value * time,
		.variance = all * at_rate(s->plan->variance, rate),
		.seen = fmin(all * at_rate(s->plan->seen, rate), sum->value * time),
		.samples = 1,
		.next = !(rate > 1) ? 0
		        : counts    ? fmax(1, -1 / expm1(-s->smallest / rate))
		                    : rate,
		.hidden = counts && rate > 1 ? -1 / expm1(-(double)ESTIMATE_HIDDEN_BYTES / rate) : 0,
	};
}

/* Half of the interval in relation to the estimate. */
static double precision_at(const struct scene *s, double rate, double time)
{
	struct estimate_sum sum = imagine(s, rate, time);
	double part = estimate_listed_share(&sum, s->confidence, s->whole * time);
	struct estimate x = estimate_interval_listed(&sum, s->confidence, part);

	return (x.high - x.low) / 2 / x.value;
}

/* The precision at rate 1 is 0. */
static double find_rate(const struct scene *s, double precision)
{
	double low = 0;
	double high = log(s->rate);

	if (precision_at(s, s->rate, 1) <= precision)
		return s->rate;
	for (int i = 0; i < STEPS; i++) {
		double middle = (low + high) / 2;
		*(precision_at(s, exp(middle), 1) <= precision ? &low : &high) = middle;
	}
	return exp(low);
}

static double find_time(const struct scene *s, double precision)
{
	double low = 1;
	double high = 1;

	while (high < TIME_MAX && precision_at(s, s->rate, high) > precision) {
		low = high;
		high *= 4;
	}
	if (!(high < TIME_MAX))
		return INFINITY;
	for (int i = 0; i < STEPS && high > low; i++) {
		double middle = sqrt(low * high);
		*(precision_at(s, s->rate, middle) <= precision ? &high : &low) = middle;
	}
	return high;
}

struct report_plan report_plan(const struct report *r, const struct report_row *row)
{
	enum report_figure f = r->options.sort;
	struct estimate x = report_estimate(r, row, f);
	struct report_plan plan = { .now = INFINITY, .rate = INFINITY, .seconds = INFINITY };

	if (!row->plan || !(row->plan->value > 0) || !(x.value > 0))
		return plan;
	plan.now = (x.high - x.low) / 2 / x.value;
	const struct scene scene = { .sum = &row->sum[f],
		                     .plan = row->plan,
		                     .smallest = row->smallest[0],
		                     .rate = (double)r->largest_rate,
		                     .confidence = r->options.confidence,
		                     .whole = report_estimate(r, &r->total, f).value };
	plan.rate = find_rate(&scene, r->options.plan);
	plan.seconds = r->session_count ? (double)r->sessions[0].duration_ns / 1e9 * find_time(&scene, r->options.plan)
	                                : INFINITY;
	return plan;
}
