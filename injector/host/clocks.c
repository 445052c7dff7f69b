/* SPDX-License-Identifier: MIT */
#include "host/clocks.h"

#include <time.h>

#include "arch/cycles.h"
#include "base/now.h"

uint64_t clock_dump_stamp(void)
{
	return cycles_now();
}

uint64_t clock_monotonic_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

void clock_pause(uint64_t ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

/* Of several tries the one that took least time. */
struct dump_clock clock_dump_now(void)
{
	struct dump_clock best = { 0 };
	uint64_t best_ticks = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t before = clock_dump_stamp();
		uint64_t monotonic = clock_monotonic_ns();
		uint64_t after = clock_dump_stamp();
		if (after - before < best_ticks) {
			best_ticks = after - before;
			best.stamp = before + (after - before) / 2;
			best.monotonic_ns = monotonic;
			best.realtime_ns = now_ns(CLOCK_REALTIME);
		}
	}
	return best;
}
