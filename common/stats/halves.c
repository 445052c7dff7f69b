/* SPDX-License-Identifier: MIT */
#include "stats/halves.h"

#include "stats/estimate.h"

/* Other constants than those of thinning.c: which half a sample is in says nothing of how long it stays. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* In (0, 1); the same in each process. */
static double number(const struct thinning_sample *s)
{
	uint64_t hash = mix(mix(s->stamp + 0x9e3779b97f4a7c15ull) + s->size);

	hash = mix(hash ^ ((uint64_t)s->stack << 32 | s->tid));
	return ((double)(hash >> 11) + 0.5) * 0x1p-53;
}

uint64_t half_rate_of(const struct thinning_sample *s, enum sample_half half)
{
	uint64_t rate = half_rate(s->rate_bytes, half);
	double q = estimate_probability(s->size, rate) / estimate_probability(s->size, s->rate_bytes);

	if (half == HALF_NONE || rate <= 1)
		return rate;
	/* In both below the first limit, to the second one in that which chooses, above in that which tells. */
	double both = q * estimate_probability(s->size, rate), u = number(s);
	return (half == HALF_CHOOSES ? u < q : u < both || u >= q) ? rate : 0;
}
