/* SPDX-License-Identifier: MIT */
#include "estimate.h"

#include <math.h>

#include "gamma.h"

/* Above this shape a gamma distribution is the normal one within double precision. */
#define NORMAL_SHAPE 1e14
/* See estimate.h: how far the next weight may be above the largest that was seen. */
#define RECORD_STEPS 3

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

struct estimate_block estimate_block(double p)
{
	double variance = (1 - p) / (p * p);
	double logarithm = -log(p);

	return (struct estimate_block){ .p = p,
					.weight = 1 / p,
					.variance = variance,
					.log_sum = variance * logarithm,
					.log_square = variance * logarithm * logarithm };
}

void estimate_add_block(struct estimate_sum *sum, double p)
{
	const struct estimate_block block = estimate_block(p);

	estimate_add(sum, 1, p);
	sum->known++;
	sum->log_sum += block.log_sum;
	sum->log_square += block.log_square;
	if (p < 1)
		estimate_expect(sum, block.weight);
}

void estimate_merge(struct estimate_sum *into, const struct estimate_sum *from)
{
	into->value += from->value;
	into->variance += from->variance;
	into->seen += from->seen;
	into->samples += from->samples;
	into->known += from->known;
	into->log_sum += from->log_sum;
	into->log_square += from->log_square;
	estimate_expect(into, from->next);
	into->hidden = fmax(into->hidden, from->hidden);
}

void estimate_expect(struct estimate_sum *sum, double weight)
{
	if (weight > sum->next)
		sum->next = weight;
}

void estimate_hide(struct estimate_sum *sum, uint64_t rate)
{
	if (rate > 1)
		sum->hidden = fmax(sum->hidden, 1 / estimate_probability(ESTIMATE_HIDDEN_BYTES, rate));
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

/* The chance that a gamma distribution with this mean and variance is above x. */
static double gamma_above(double mean, double variance, double x)
{
	double shape = mean * mean / variance;

	if (shape > NORMAL_SHAPE)
		return 0.5 * erfc((x - mean) / sqrt(2 * variance));
	return gamma_q(shape, x * mean / variance);
}

/* The weight of a block that is hidden behind those of a sum of counts, if it is not of another kind: see estimate.h. */
static double next_block(const struct estimate_sum *sum)
{
	double n = (double)sum->samples;

	if (!(sum->variance > 0) || n < 2)
		return sum->next;
	double mean = sum->log_sum / sum->variance;
	double spread = sqrt(fmax(0, sum->log_square / sum->variance - mean * mean));
	/* What is left of equal logarithms is rounding. */
	if (!(spread > 1e-6))
		return sum->next;
	/* A byte is the least that a block has. */
	return fmin(sum->next * exp(RECORD_STEPS * spread / sqrt(1 + 2 * log(n))),
		    fmax(ESTIMATE_HIDDEN_BYTES * sum->hidden, sum->next));
}

/*
 * Upper end of a mixture: with the chance rare the next block weighs hidden, else next. The logarithm of a tail is nearly
 * straight, so that false position on it ends after a few steps (Illinois: halve the weight of an end that stays).
 */
static double mixture_quantile(double y, double v, double next, double hidden, double rare, double tail)
{
	double low = gamma_quantile(y + next, v + next * next, tail, 1);
	double high = gamma_quantile(y + hidden, v + hidden * hidden, tail, 1);
	double at_low, at_high;
	int side = 0;

	at_low = log(((1 - rare) * tail + rare * gamma_above(y + hidden, v + hidden * hidden, low)) / tail);
	at_high = log(((1 - rare) * gamma_above(y + next, v + next * next, high) + rare * tail) / tail);
	if (!(at_low > 0) || !(at_high < 0) || !isfinite(at_low) || !isfinite(at_high))
		return at_low > 0 ? high : low;
	for (int i = 0; i < 60 && high - low > 1e-9 * high; i++) {
		double x = low + (high - low) * at_low / (at_low - at_high);
		if (!(x > low) || !(x < high))
			x = low + (high - low) / 2;
		double above = (1 - rare) * gamma_above(y + next, v + next * next, x) +
			       rare * gamma_above(y + hidden, v + hidden * hidden, x);
		double at = above > 0 ? log(above / tail) : -700;
		if (fabs(at) < 1e-10)
			return x;
		if (at > 0) {
			low = x;
			at_low = at;
			at_high /= side > 0 ? 2 : 1;
			side = 1;
		} else {
			high = x;
			at_high = at;
			at_low /= side < 0 ? 2 : 1;
			side = -1;
		}
	}
	return high;
}

static double upper_end(const struct estimate_sum *sum, double tail)
{
	double y = sum->value;
	double v = sum->variance;
	double next = sum->hidden > 0 && sum->known ? fmax(next_block(sum), 1) : sum->next;
	double hidden = fmax(sum->hidden, next);

	if (!(y + hidden > 0) || !(v + hidden * hidden > 0))
		return y;
	if (!(next < hidden) || !sum->known)
		return gamma_quantile(y + hidden, v + hidden * hidden, tail, 1);
	return mixture_quantile(y, v, next, hidden, 1 / ((double)sum->known + 1), tail);
}

struct estimate estimate_interval(const struct estimate_sum *sum, double confidence)
{
	double y = sum->value;
	double v = sum->variance;
	double alpha = 1 - confidence;
	struct estimate r = { .value = y, .error = sqrt(v), .low = y };

	if (y > 0 && v > 0)
		r.low = gamma_quantile(y, v, alpha / 2, 0);
	r.low = fmin(fmax(r.low, sum->seen), y);
	r.high = fmax(upper_end(sum, alpha / 2), y);
	return r;
}
