/* SPDX-License-Identifier: MIT */
#include "stats/estimate.h"

#include <math.h>

#include "stats/gamma.h"

/* Above this shape a gamma distribution is the normal one within double precision. */
#define NORMAL_SHAPE 1e14
/* Below this a gamma distribution is the first term of its series. */
#define SMALL 1e-4
/* Ends of counts are rounded to whole numbers, but for what rounding errors of the sums may have added. */
#define ROUNDING 1e-9
/* Makes up for the steps of a whole number where ends are not rounded. */
#define HALF 0.5
/* The lower end of what is listed is found by iteration, from so many standard errors below the estimate, where a gamma
 * distribution of bytes has more than this shape, or blocks are counted. */
#define LARGE_SHAPE 1000.0
#define START_ERRORS 4
#define STEPS 20
#define CLOSE 1e-3
#define LEAST_TAIL 1e-15

double estimate_probability(uint64_t size, uint64_t rate)
{
	if (rate <= 1)
		return 1;
	return -expm1(-(double)(size ? size : 1) / (double)rate);
}

double estimate_size(double weight, uint64_t rate)
{
	return weight > 1 && rate > 1 ? -(double)rate * log1p(-1 / weight) : 0;
}

double estimate_weight(double size, uint64_t rate)
{
	return size > 0 && rate > 1 ? -1 / expm1(-size / (double)rate) : 0;
}

void estimate_add(struct estimate_sum *sum, double x, double p)
{
	sum->value += x / p;
	sum->variance += x * x * (1 - p) / (p * p);
	sum->seen += x;
	sum->samples++;
}

void estimate_add_part(struct estimate_sum *sum, double x, double p, double rest)
{
	sum->value += x / p;
	sum->variance += estimate_part_variance(x, p, rest);
	sum->seen += x;
	sum->samples += !(rest > 0);
}

struct estimate_block estimate_block(double p)
{
	return (struct estimate_block){ .p = p, .weight = 1 / p, .variance = (1 - p) / (p * p) };
}

void estimate_add_block(struct estimate_sum *sum, double p)
{
	estimate_add(sum, 1, p);
	if (p < 1)
		estimate_expect(sum, 1 / p);
}

void estimate_merge(struct estimate_sum *into, const struct estimate_sum *from)
{
	bool count = into->hidden > 0 || from->hidden > 0;

	/* Where one of two numbers of blocks has samples, theirs are the sizes that are known of both. */
	if (count && !into->samples && from->samples)
		into->next = from->next;
	else if (!count || !into->samples || from->samples)
		estimate_expect(into, from->next);
	into->value += from->value;
	into->variance += from->variance;
	into->seen += from->seen;
	into->samples += from->samples;
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

/* They are fewer than the detection limit, in whole blocks. */
double estimate_unseen_blocks(double hidden, double confidence)
{
	return ceil(estimate_detection_limit(hidden, confidence)) - 1;
}

/* Quantile of the gamma distribution with this mean and variance; upper: the tail above has the given probability. */
static double gamma_quantile(double mean, double variance, double tail, int upper)
{
	double shape = mean * mean / variance;

	if (!(mean > 0) || !(variance > 0))
		return fmax(mean, 0);
	/* Far below the mean the lower tail is x^a / Gamma(a + 1), but for a part x a / (a + 1). */
	double x = upper ? 1 : exp((log(tail) + lgamma(shape + 1)) / shape);
	if (x < SMALL)
		return variance / mean * x * (1 + x / (shape + 1));
	if (shape > NORMAL_SHAPE)
		return mean + (upper ? -1 : 1) * stats_normal_quantile(tail) * sqrt(variance);
	return variance / mean * (upper ? gamma_q_inverse(shape, tail) : gamma_p_inverse(shape, tail));
}

/* Of a number of blocks: those that were seen, and a number of others. */
static double count_low(const struct estimate_sum *sum, double tail)
{
	double unseen = fmax(0, sum->value - sum->seen);

	return sum->seen + gamma_quantile(unseen, sum->variance, tail, 0) - HALF;
}

static double count_high(const struct estimate_sum *sum, double tail)
{
	double unseen = fmax(0, sum->value - sum->seen);
	double next = sum->next > 0 ? fmax(sum->next, 1) : sum->samples ? 1 : sum->hidden;

	return sum->seen + gamma_quantile(unseen + next - 1, sum->variance + next * (next - 1), tail, 1) + HALF;
}

/* How many blocks there may be whose weight is above that of every sample; 0: of any size. */
static double count_unseen(const struct estimate_sum *sum, double confidence)
{
	bool any = !sum->samples && !(sum->next > 0); /* then the interval is about them */

	return sum->hidden > sum->next && !any ? estimate_unseen_blocks(sum->hidden, confidence) : 0;
}

static double low_at(const struct estimate_sum *sum, double tail)
{
	double y = sum->value;
	double v = sum->variance;
	double low = sum->hidden > 0 ? count_low(sum, tail) : v > 0 ? gamma_quantile(y, v, tail, 0) : y;

	return fmin(fmax(low, sum->seen), y);
}

double estimate_low_smooth(const struct estimate_sum *sum, double confidence)
{
	return low_at(sum, (1 - confidence) / 2);
}

double estimate_high_smooth(const struct estimate_sum *sum, double confidence)
{
	double tail = (1 - confidence) / 2;
	double y = sum->value;
	double w = sum->next;
	double high = sum->hidden > 0
	                      ? count_high(sum, tail)
	                      : sum->seen + gamma_quantile(fmax(0, y - sum->seen) + w, sum->variance + w * w, tail, 1);

	return fmax(high, y);
}

static struct estimate interval_of(const struct estimate_sum *sum, double low_tail, double confidence)
{
	return (struct estimate){ .value = sum->value,
		                  .error = sqrt(sum->variance),
		                  .low = low_at(sum, low_tail),
		                  .high = estimate_high_smooth(sum, confidence),
		                  .unseen = count_unseen(sum, confidence),
		                  .exact = !(sum->variance > 0) && !(sum->hidden > 0) && !(sum->next > 0) };
}

struct estimate estimate_interval_smooth(const struct estimate_sum *sum, double confidence)
{
	return interval_of(sum, (1 - confidence) / 2, confidence);
}

static struct estimate rounded(const struct estimate_sum *sum, struct estimate x)
{
	if (sum->hidden > 0) {
		x.low = fmin(floor((x.low + HALF) * (1 + ROUNDING)), x.value);
		x.high = fmax(ceil((x.high - HALF) * (1 - ROUNDING)), x.value);
	}
	return x;
}

struct estimate estimate_interval(const struct estimate_sum *sum, double confidence)
{
	return rounded(sum, estimate_interval_smooth(sum, confidence));
}

/* The part of the error that a lower end has, which holds for all that are listed. */
static double listed_tail(double confidence, double share)
{
	return fmax((1 - confidence) / 2 * share, LEAST_TAIL);
}

/* By iteration, for any sum. */
static double listed_share_in_steps(const struct estimate_sum *sum, double confidence, double whole)
{
	double low = fmax(sum->seen, sum->value - START_ERRORS * sqrt(sum->variance));
	double before = 0;

	for (int i = 0; i < STEPS && fabs(low - before) > CLOSE * low; i++) {
		before = low;
		low = low_at(sum, listed_tail(confidence, fmin(1, low / whole)));
	}
	return fmin(1, low / whole);
}

double estimate_listed_share(const struct estimate_sum *sum, double confidence, double whole)
{
	double y = sum->value;
	double scale = sum->variance / y;

	if (!(whole > 0) || !(sum->variance > 0))
		return 1;
	if (sum->hidden > 0 || y / scale > LARGE_SHAPE)
		return listed_share_in_steps(sum, confidence, whole);
	double low = scale * gamma_p_crosses(y / scale, (1 - confidence) / 2 * scale / whole);
	return fmin(1, fmax(sum->seen, low) / whole);
}

struct estimate estimate_interval_listed(const struct estimate_sum *sum, double confidence, double share)
{
	return rounded(sum, interval_of(sum, listed_tail(confidence, share), confidence));
}
