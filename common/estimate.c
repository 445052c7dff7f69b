/* SPDX-License-Identifier: MIT */
#include "estimate.h"

#include <math.h>

#include "gamma.h"

/* Above this shape a gamma distribution is the normal one within double precision. */
#define NORMAL_SHAPE 1e14

double estimate_probability(uint64_t size, uint64_t rate)
{
	if (rate <= 1)
		return 1;
	return -expm1(-(double)(size ? size : 1) / (double)rate);
}

void estimate_add(struct estimate_sum *sum, double x, double p)
{
	sum->value += x / p;
	sum->variance += x * x * (1 - p) / (p * p);
	sum->seen += x;
	sum->samples++;
}

void estimate_merge(struct estimate_sum *into, const struct estimate_sum *from)
{
	into->value += from->value;
	into->variance += from->variance;
	into->seen += from->seen;
	into->samples += from->samples;
	estimate_expect(into, from->next);
}

void estimate_expect(struct estimate_sum *sum, double weight)
{
	if (weight > sum->next)
		sum->next = weight;
}

double estimate_detection_limit(double next, double confidence)
{
	return -log1p(-confidence) * next;
}

/* Quantile of the gamma distribution with this mean and variance; upper: the tail above has the given probability. */
static double gamma_quantile(double mean, double variance, double tail, int upper)
{
	double shape = mean * mean / variance;

	if (shape > NORMAL_SHAPE)
		return mean + (upper ? -1 : 1) * normal_quantile(tail) * sqrt(variance);
	return variance / mean * (upper ? gamma_q_inverse(shape, tail) : gamma_p_inverse(shape, tail));
}

struct estimate estimate_interval(const struct estimate_sum *sum, double confidence)
{
	double y = sum->value;
	double v = sum->variance;
	double w = sum->next;
	double alpha = 1 - confidence;
	struct estimate r = { .value = y, .error = sqrt(v), .low = y, .high = y };

	if (y > 0 && v > 0)
		r.low = gamma_quantile(y, v, alpha / 2, 0);
	if (y + w > 0 && v + w * w > 0)
		r.high = gamma_quantile(y + w, v + w * w, alpha / 2, 1);
	r.low = fmin(fmax(r.low, sum->seen), y);
	r.high = fmax(r.high, y);
	return r;
}
