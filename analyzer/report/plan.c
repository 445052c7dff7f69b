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
#define NEAR 1e-3
#define FARTHEST 20.0
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
static double at_rate(const float *list, double rate)
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

/* How far, in logarithms, it is from what is wanted; of a logarithm of the rate, or of the time. */
static double miss(const struct scene *s, double wanted, double x, bool in_time)
{
	double precision = precision_at(s, in_time ? s->rate : exp(x), in_time ? exp(x) : 1);

	return fmax(-FARTHEST, log(precision / wanted));
}

/* Where it is what is wanted, from a place where it is better to one where it is not: by false position, the weight of
 * an end that stays halved (Illinois), since the logarithms are nearly on a line. */
static double find(const struct scene *s, double wanted, double good, double bad, bool in_time)
{
	double at_good = miss(s, wanted, good, in_time);
	double at_bad = miss(s, wanted, bad, in_time);
	int side = 0;

	for (int i = 0; i < STEPS && fabs(bad - good) > NEAR && at_good < -NEAR; i++) {
		double x = good + (bad - good) * at_good / (at_good - at_bad);
		double at = miss(s, wanted, x, in_time);
		if (at <= 0) {
			good = x;
			at_good = at;
			at_bad /= side > 0 ? 2 : 1;
			side = 1;
		} else {
			bad = x;
			at_bad = at;
			at_good /= side < 0 ? 2 : 1;
			side = -1;
		}
	}
	return exp(good);
}

/* The precision at rate 1 is 0. */
static double find_rate(const struct scene *s, double precision)
{
	double high = log(s->rate);
	double above = miss(s, precision, high, false);

	if (above <= 0)
		return s->rate;
	/* The error is about the root of the rate. */
	double low = fmax(0, high - 2 * above - 1);
	return find(s, precision, miss(s, precision, low, false) <= 0 ? low : 0, high, false);
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
	return high > 1 ? find(s, precision, log(high), log(low), true) : 1;
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
