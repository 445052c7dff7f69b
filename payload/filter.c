/* SPDX-License-Identifier: MIT */
/* The filter of free, see filter.h. hooks.S holds a copy of filter_maybe(), trampolines.S one of its first half. */
#include "filter.h"

uint8_t *filter_counters;
uint32_t filter_mask;

struct counters {
	uint8_t *first;
	uint8_t *second; /* perhaps the same */
};

static inline struct counters counters_of(uint64_t address)
{
	uint64_t hash = address * FILTER_MULTIPLIER;
	uint64_t first = (uint64_t)&filter_counters[(uint32_t)(hash >> FILTER_SHIFT) & filter_mask];

	return (struct counters){
		.first = (uint8_t *)first,
		.second = (uint8_t *)(first ^ (hash >> FILTER_SECOND_SHIFT & (FILTER_LINE_BYTES - 1))),
	};
}

static bool exact;

void filter_init(uint8_t *counters, uint32_t count)
{
	exact = false;
	filter_counters = counters;
	filter_mask = count - 1;
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
	} while (!__atomic_compare_exchange_n(counter, &old, (uint8_t)(old + 1), false, __ATOMIC_RELEASE,
	                                      __ATOMIC_RELAXED));
}

static void counter_down(uint8_t *counter)
{
	uint8_t old = __atomic_load_n(counter, __ATOMIC_RELAXED);

	do {
		/* 0: wiped in a forked child in the middle of a call */
		if (old == FILTER_STICKY || old == 0)
			return;
	} while (!__atomic_compare_exchange_n(counter, &old, (uint8_t)(old - 1), false, __ATOMIC_RELEASE,
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

	return __atomic_load_n(of.first, __ATOMIC_ACQUIRE) && __atomic_load_n(of.second, __ATOMIC_ACQUIRE);
}
