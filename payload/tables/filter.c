/* SPDX-License-Identifier: MIT */
/* The filter of free, see filter.h. hooks.S holds a copy of filter_maybe(), trampolines.S one of its first half. */
#include "tables/filter.h"

uint8_t *filter_counters;
uint32_t filter_mask;
uint32_t filter_multiplier;

struct counters {
	uint8_t *first;
	uint8_t *second; /* perhaps the same */
};

static inline struct counters counters_of(uint64_t address)
{
	uint64_t hash = address * filter_multiplier;
	uint64_t first = (uint64_t)&filter_counters[(uint32_t)(hash >> FILTER_SHIFT) & filter_mask];

	return (struct counters){
		.first = (uint8_t *)first,
		.second = (uint8_t *)(first ^ (hash >> FILTER_SECOND_SHIFT & (FILTER_LINE_BYTES - 1))),
	};
}

static bool exact;

/* Odd, so that distances which are powers of two lead to as many counters as they can. */
static uint32_t multiplier_for(uint64_t rate_bytes)
{
	uint64_t multiplier = (uint64_t)FILTER_FINEST * FILTER_FINEST_RATE / rate_bytes;

	if (multiplier > FILTER_FINEST)
		return FILTER_FINEST;
	return (multiplier > FILTER_COARSEST ? (uint32_t)multiplier : FILTER_COARSEST) | 1;
}

void filter_init(uint8_t *counters, uint32_t count, uint64_t rate_bytes)
{
	exact = false;
	filter_counters = counters;
	filter_mask = count - 1;
	filter_multiplier = multiplier_for(rate_bytes);
}

void filter_make_exact(void)
{
	for (uint32_t i = 0; i <= filter_mask; i++)
		filter_counters[i] = FILTER_STICKY;
	exact = true;
}

bool filter_is_exact(void)
{
	return exact;
}

static void counter_up(uint8_t *counter)
{
	uint8_t old = __atomic_load_n(counter, __ATOMIC_RELAXED);

	do {
		if (old == FILTER_STICKY)
			return;
	} while (!__atomic_compare_exchange_n(counter, &old, (uint8_t)(old + 1), false, __ATOMIC_RELAXED,
	                                      __ATOMIC_RELAXED));
}

static void counter_down(uint8_t *counter)
{
	uint8_t old = __atomic_load_n(counter, __ATOMIC_RELAXED);

	do {
		/* 0: wiped in a forked child in the middle of a call */
		if (old == FILTER_STICKY || old == 0)
			return;
	} while (!__atomic_compare_exchange_n(counter, &old, (uint8_t)(old - 1), false, __ATOMIC_RELAXED,
	                                      __ATOMIC_RELAXED));
}

void filter_add(uint64_t address)
{
	struct counters of = counters_of(address);

	counter_up(of.first);
	counter_up(of.second);
}

void filter_remove(uint64_t address)
{
	struct counters of = counters_of(address);

	counter_down(of.first);
	counter_down(of.second);
}

bool filter_maybe(uint64_t address)
{
	struct counters of = counters_of(address);

	return __atomic_load_n(of.first, __ATOMIC_RELAXED) && __atomic_load_n(of.second, __ATOMIC_RELAXED);
}
