/* SPDX-License-Identifier: MIT */
#include "estimate.h"

#include <math.h>

#include "gamma.h"

/* Above this shape a gamma distribution is the normal one within double precision. */
#define NORMAL_SHAPE 1e14
/* Ends of counts are rounded to whole numbers, but for what rounding errors of the sums may have added. */
#define ROUNDING 1e-9

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

	if (!(mean > 0) || !(variance > 0))
		return fmax(mean, 0);
	if (shape > NORMAL_SHAPE)
		return mean + (upper ? -1 : 1) * normal_quantile(tail) * sqrt(variance);
	return variance / mean * (upper ? gamma_q_inverse(shape, tail) : gamma_p_inverse(shape, tail));
}

/* The chance that a gamma distribution with this mean and variance is above x. */
static double gamma_above(double mean, double variance, double x)
{
	double shape = mean * mean / variance;

	if (!(mean > 0) || !(variance > 0))
		return x < mean;
	if (shape > NORMAL_SHAPE)
		return 0.5 * erfc((x - mean) / sqrt(2 * variance));
	return gamma_q(shape, x * mean / variance);
}

/* The weight of a block that is hidden behind those of a count, if it is not of another kind: see estimate.h. */
static double next_block(const struct estimate_sum *sum, double confidence)
{
	if (!(sum->variance > 0))
		return fmax(sum->next, 1);
	double mean = sum->log_sum / sum->variance;
	double spread = sqrt(fmax(0, sum->log_square / sum->variance - mean * mean));
	double reach = exp(mean + fmax(0, normal_quantile(confidence)) * spread);
	/* A byte is the least that a block has. */
	return fmax(fmax(sum->next, 1), fmin(reach, ESTIMATE_HIDDEN_BYTES * sum->hidden));
}

/* Two gamma distributions by mean and variance. */
struct mixture {
	double mean, variance;           /* usually */
	double rare;                     /* the chance of the other one, */
	double rare_mean, rare_variance; /* which reaches farther */
};

static double mixture_above(const struct mixture *m, double x)
{
	return (1 - m->rare) * gamma_above(m->mean, m->variance, x) +
	       m->rare * gamma_above(m->rare_mean, m->rare_variance, x);
}

/*
 * The quantile with so much above it. The logarithm of a tail is nearly straight, so that false position on it ends
 * after a few steps (Illinois: halve the weight of an end that stays).
 */
static double mixture_quantile(const struct mixture *m, double tail)
{
	double low = gamma_quantile(m->mean, m->variance, tail, 1);
	if (!(m->rare_mean > m->mean))
		return low;
	double high = gamma_quantile(m->rare_mean, m->rare_variance, tail, 1);
	double at_low = log(mixture_above(m, low) / tail);
	double at_high = log(mixture_above(m, high) / tail);
	int side = 0;

	if (!(at_low > 0) || !(at_high < 0) || !isfinite(at_low) || !isfinite(at_high))
		return at_low > 0 ? high : low;
	for (int i = 0; i < 60 && high - low > 1e-9 * high; i++) {
		double x = low + (high - low) * at_low / (at_low - at_high);
		if (!(x > low) || !(x < high))
			x = low + (high - low) / 2;
		double above = mixture_above(m, x);
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

/* Of a number of blocks: those that were seen, and a number of others. */
static double count_low(const struct estimate_sum *sum, double tail)
{
	double unseen = fmax(0, sum->value - sum->seen);

	return sum->seen + gamma_quantile(unseen, sum->variance, tail, 0) - 0.5;
}

static double count_high(const struct estimate_sum *sum, double confidence, double tail)
{
	double unseen = fmax(0, sum->value - sum->seen);
	double v = sum->variance;
	double next = next_block(sum, confidence);
	double hidden = fmax(sum->hidden, next);
	struct mixture m = { .mean = unseen + next - 1,
		             .variance = v + next * (next - 1),
		             .rare = 1 / ((double)sum->known + 1),
		             .rare_mean = unseen + hidden - 1,
		             .rare_variance = v + hidden * (hidden - 1) };
	double many = sum->known ? mixture_quantile(&m, tail) : gamma_quantile(m.rare_mean, m.rare_variance, tail, 1);

	return sum->seen + many + 0.5;
}

double estimate_low_smooth(const struct estimate_sum *sum, double confidence)
{
	double tail = (1 - confidence) / 2;
	double y = sum->value;
	double v = sum->variance;
	double low = sum->hidden > 0 ? count_low(sum, tail) : v > 0 ? gamma_quantile(y, v, tail, 0) : y;

	return fmin(fmax(low, sum->seen), y);
}

double estimate_high_smooth(const struct estimate_sum *sum, double confidence)
{
	double tail = (1 - confidence) / 2;
	double y = sum->value;
	double w = sum->next;
	double high = sum->hidden > 0 ? count_high(sum, confidence, tail)
	                              : gamma_quantile(y + w, sum->variance + w * w, tail, 1);

	return fmax(high, y);
}

struct estimate estimate_interval_smooth(const struct estimate_sum *sum, double confidence)
{
	return (struct estimate){ .value = sum->value,
		                  .error = sqrt(sum->variance),
		                  .low = estimate_low_smooth(sum, confidence),
		                  .high = estimate_high_smooth(sum, confidence),
		                  .exact = !(sum->variance > 0) && !(sum->hidden > 0) && !(sum->next > 0) };
}

struct estimate estimate_interval(const struct estimate_sum *sum, double confidence)
{
	struct estimate r = estimate_interval_smooth(sum, confidence);

	if (sum->hidden > 0) {
		r.low = fmin(ceil(r.low * (1 - ROUNDING)), r.value);
		r.high = fmax(floor(r.high * (1 + ROUNDING)), r.value);
	}
	return r;
}
