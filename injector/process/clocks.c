/* SPDX-License-Identifier: MIT */
#include "clocks.h"

#include <time.h>
#include <x86intrin.h>

uint64_t dump_clock_stamp(void)
{
	return __rdtsc();
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Of several tries the one that took least time. */
struct dump_clock dump_clock_now(void)
{
	struct dump_clock best = { 0 };
	uint64_t best_ticks = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t before = dump_clock_stamp();
		uint64_t monotonic = monotonic_ns();
		uint64_t after = dump_clock_stamp();
		if (after - before < best_ticks) {
			best_ticks = after - before;
			best.stamp = before + (after - before) / 2;
			best.monotonic_ns = monotonic;
			best.realtime_ns = clock_ns(CLOCK_REALTIME);
		}
	}
	return best;
}
