/* SPDX-License-Identifier: MIT */
#include "thinning.h"

#include <math.h>

#include "estimate.h"

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* In (0, 1), a multiple of 2^-53 shifted by half of that. */
static double number(const struct thinning_sample *s)
{
	uint64_t hash = mix(mix(s->stamp) ^ s->size);

	hash = mix(hash ^ ((uint64_t)s->stack << 32 | s->tid));
	return ((double)(hash >> 11) + 0.5) * 0x1p-53;
}

double thinning_survival(const struct thinning_sample *s)
{
	double size = s->size ? (double)s->size : 1;
	double rate = -size / log1p(-number(s) * estimate_probability(s->size, s->rate_bytes));

	/* u is less than 1, so it survives its own rate, however that is rounded. */
	return fmax(rate, nextafter((double)s->rate_bytes, INFINITY));
}

uint32_t thinning_rate(const struct thinning *list, size_t count, const struct thinning_sample *s, uint64_t freed)
{
	uint64_t rate = s->rate_bytes;

	for (size_t i = 0; i < count; i++)
		if (s->stamp <= list[i].stamp && list[i].stamp <= freed && list[i].rate_bytes > rate)
			rate = list[i].rate_bytes;
	if (rate == s->rate_bytes)
		return s->rate_bytes;
	return rate <= UINT32_MAX && (double)rate < thinning_survival(s) ? (uint32_t)rate : 0;
}
