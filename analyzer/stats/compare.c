/* SPDX-License-Identifier: MIT */
#include "stats/compare.h"

#include <math.h>
#include <stdlib.h>

#include "base/order.h"

#define STEPS 40
#define LOWEST_P 1e-12
#define HIGHEST_P (0.5 - 1e-6)
#define PRECISION 1e-4 /* of the logarithm of a p-value */
#define NARROW 1e-5

/* The weight at rate of a block that has another one at other. */
static double at_rate(double weight, uint64_t other, uint64_t rate)
{
	return rate == other ? weight : estimate_weight(estimate_size(weight, other), rate);
}

void compare_share_sizes(struct estimate_sum *plus, uint64_t plus_rate, struct estimate_sum *minus, uint64_t minus_rate)
{
	if (!(plus->hidden > 0) || !(minus->hidden > 0))
		return;
	double came = at_rate(plus->next, plus_rate, minus_rate);
	estimate_expect(plus, at_rate(minus->next, minus_rate, plus_rate));
	estimate_expect(minus, came);
}

struct estimate compare_interval(const struct estimate_sum *plus, const struct estimate_sum *minus, double confidence)
{
	struct estimate x = estimate_interval_smooth(plus, confidence);
	struct estimate y = estimate_interval_smooth(minus, confidence);
	double d = x.value - y.value;

	return (struct estimate){ .value = d,
		                  .error = hypot(x.error, y.error),
		                  .low = d - hypot(x.value - x.low, y.high - y.value),
		                  .high = d + hypot(x.high - x.value, y.value - y.low),
		                  .unseen = fmax(x.unseen, y.unseen),
		                  .exact = x.exact && y.exact };
}

double compare_low(const struct estimate_sum *plus, const struct estimate_sum *minus, double tail)
{
	double confidence = 1 - 2 * tail;

	return plus->value - minus->value -
	       hypot(plus->value - estimate_low_smooth(plus, confidence),
	             estimate_high_smooth(minus, confidence) - minus->value);
}

/* Logarithms of p: at low the interval begins at or below 0, at high above. */
struct bracket {
	double low, high, at_low, at_high;
};

/* The lower end rises nearly straight with the logarithm of p: false position (Illinois: halve the weight of an end
 * that stays). */
static void narrow(const struct estimate_sum *plus, const struct estimate_sum *minus, struct bracket *b)
{
	int side = 0;

	for (int i = 0; i < STEPS && b->high - b->low > NARROW; i++) {
		double x = b->low + (b->high - b->low) * b->at_low / (b->at_low - b->at_high);
		/* Both ends come near: an estimate next to one of them is put a little beyond. */
		x = fmin(fmax(x, b->low + NARROW / 2), b->high - NARROW / 2);
		double at = compare_low(plus, minus, exp(x));
		if (at > 0) {
			b->high = x;
			b->at_high = at;
			b->at_low /= side > 0 ? 2 : 1;
			side = 1;
		} else {
			b->low = x;
			b->at_low = at;
			b->at_high /= side < 0 ? 2 : 1;
			side = -1;
		}
	}
}

double compare_p_value(const struct estimate_sum *plus, const struct estimate_sum *minus)
{
	double low = log(LOWEST_P);
	double high = 0;
	struct bracket b = { .low = low, .high = log(HIGHEST_P) };

	if (!(plus->value > minus->value))
		return 1;
	b.at_low = compare_low(plus, minus, LOWEST_P);
	if (b.at_low > 0)
		return LOWEST_P;
	b.at_high = compare_low(plus, minus, HIGHEST_P);
	if (b.at_high > 0)
		narrow(plus, minus, &b);
	else
		b.low = b.high;
	/* The next halving of the logarithm: so the result does not depend on how it was narrowed down. */
	for (int i = 0; i < STEPS && high - low > PRECISION; i++) {
		double middle = (low + high) / 2;
		if (middle >= b.high || (middle > b.low && compare_low(plus, minus, exp(middle)) > 0))
			high = middle;
		else
			low = middle;
	}
	return exp(high);
}

ORDER_NUMBERS(compare_doubles, double);

double compare_threshold(double *p, size_t n, double level)
{
	double threshold = -1;

	if (n)
		qsort(p, n, sizeof *p, compare_doubles);
	for (size_t i = 0; i < n; i++)
		if (p[i] <= level * (double)(i + 1) / (double)n)
			threshold = p[i];
	return threshold;
}
