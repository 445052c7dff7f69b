/* SPDX-License-Identifier: MIT */
/* The filter of free, see filter.h. hooks.S and gates.S hold copies of filter_counter(). */
#include "filter.h"

uint8_t *filter_counters;
uint32_t filter_mask;

static uint8_t *filter_counter(uint64_t address)
{
	uint64_t hash = address * FILTER_MULTIPLIER;

	return &filter_counters[(uint32_t)(hash >> FILTER_SHIFT) & filter_mask];
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

void filter_add(uint64_t address)
{
	uint8_t *counter = filter_counter(address);
	uint8_t old = __atomic_load_n(counter, __ATOMIC_RELAXED);

	do {
		if (old == FILTER_STICKY)
			return;
	} while (!__atomic_compare_exchange_n(counter, &old, (uint8_t)(old + 1), false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

void filter_remove(uint64_t address)
{
	uint8_t *counter = filter_counter(address);
	uint8_t old = __atomic_load_n(counter, __ATOMIC_RELAXED);

	do {
		/* 0: wiped in a forked child in the middle of a call */
		if (old == FILTER_STICKY || old == 0)
			return;
	} while (!__atomic_compare_exchange_n(counter, &old, (uint8_t)(old - 1), false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

bool filter_maybe(uint64_t address)
{
	return __atomic_load_n(filter_counter(address), __ATOMIC_ACQUIRE) != 0;
}
