/* SPDX-License-Identifier: MIT */
#include "host/session_seed.h"

/* Of splitmix64 (Steele, Lea and Flood, 2014): near numbers become independent ones. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t session_seed(uint64_t seed, uint64_t ordinal)
{
	if (!seed || !ordinal)
		return seed;
	uint64_t own = mix(mix(seed) + ordinal * 0x9e3779b97f4a7c15ull);
	return own ? own : 1;
}
