/* SPDX-License-Identifier: MIT */
/* The clocks of memattach: for deadlines, and for the stamps of a dump. */
#pragma once

#include <stdint.h>

#include "dump_format.h"

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_monotonic_ns(void);
/* Sleeps for less than a second, or until a signal comes. */
void clock_pause(uint64_t ns);
/* The cycle counter, which stamps of the dump are of. */
uint64_t clock_dump_stamp(void);
/* The three clocks of a dump at one instant. */
struct dump_clock clock_dump_now(void);
