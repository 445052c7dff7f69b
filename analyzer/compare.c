/* SPDX-License-Identifier: MIT */
#include "compare.h"

#include <math.h>
#include <stdlib.h>

#define STEPS 40
#define LOWEST_P 1e-12

struct estimate compare_interval(const struct estimate_sum *plus, const struct estimate_sum *minus, double confidence)
{
	struct estimate x = estimate_interval_smooth(plus, confidence);
	struct estimate y = estimate_interval_smooth(minus, confidence);
	double d = x.value - y.value;

	return (struct estimate){ .value = d,
				  .error = hypot(x.error, y.error),
				  .low = d - hypot(x.value - x.low, y.high - y.value),
				  .high = d + hypot(x.high - x.value, y.value - y.low),
				  .exact = x.exact && y.exact };
}

double compare_p_value(const struct estimate_sum *plus, const struct estimate_sum *minus)
{
	double low = log(LOWEST_P);
	double high = 0;

	if (!(plus->value > minus->value))
		return 1;
	if (compare_interval(plus, minus, 1 - 2 * LOWEST_P).low > 0)
		return LOWEST_P;
	/* The lower end rises with p; halve the logarithm of p. */
	for (int i = 0; i < STEPS && high - low > 1e-4; i++) {
		double middle = (low + high) / 2;
		double confidence = 1 - 2 * exp(middle);
		if (confidence > 0 && compare_interval(plus, minus, confidence).low <= 0)
			low = middle;
		else
			high = middle;
	}
	return exp(high);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

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
