/* SPDX-License-Identifier: MIT */
/*
 * What --plan says: the row's sums are imagined as they would be on average at another rate, or after a longer time,
 * and the interval of those is taken. So it has all that an interval allows for, as it will be then.
 */
#include "report/report.h"

#include <math.h>

#define STEPS 16
#define TIME_MAX 1e12

/* How a row was sampled. */
struct scene {
	const struct estimate_sum *sum;
	double size; /* mean size of its blocks */
	double rate;
	double confidence;
};

/* Rates are continuous here. */
static double probability(double size, double rate)
{
	return rate > 1 ? -expm1(-fmax(size, 1) / rate) : 1;
}

static struct estimate_sum imagine(const struct scene *s, double rate, double time)
{
	const struct estimate_sum *sum = s->sum;
	bool counts = sum->hidden > 0;
	double p = probability(s->size, s->rate);
	double q = probability(s->size, rate);
	double samples = time * q / p;
	double variance = p < 1 ? time * sum->variance * (1 - q) / q * p / (1 - p) : 0;

	return (struct estimate_sum){
		.value = sum->value * time,
		.variance = variance,
		.seen = fmin(sum->seen * samples, sum->value * time),
		.samples = (uint64_t)((double)sum->samples * samples),
		.next = !(rate > 1) ? 0
		        : counts    ? fmax(1, sum->next * p / q)
		                    : rate,
		.hidden = counts && rate > 1 ? 1 / probability(ESTIMATE_HIDDEN_BYTES, rate) : 0,
	};
}

/* Half of the interval in relation to the estimate. */
static double precision_at(const struct scene *s, double rate, double time)
{
	struct estimate_sum sum = imagine(s, rate, time);
	struct estimate x = estimate_interval(&sum, s->confidence);

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
	bool live = f == FIGURE_LIVE_BYTES || f == FIGURE_LIVE_COUNT;
	double bytes = row->sum[live ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES].value;
	double count = row->sum[live ? FIGURE_LIVE_COUNT : FIGURE_ALLOCATED_COUNT].value;
	struct estimate x = report_estimate(r, row, f);
	struct report_plan plan = { .now = INFINITY, .rate = INFINITY, .seconds = INFINITY };

	if (!(bytes > 0) || !(count > 0) || !(x.value > 0))
		return plan;
	plan.now = (x.high - x.low) / 2 / x.value;
	const struct scene scene = { .sum = &row->sum[f],
		                     .size = bytes / count,
		                     .rate = (double)r->largest_rate,
		                     .confidence = r->options.confidence };
	plan.rate = find_rate(&scene, r->options.plan);
	plan.seconds = r->session_count ? (double)r->sessions[0].duration_ns / 1e9 * find_time(&scene, r->options.plan)
	                                : INFINITY;
	return plan;
}
