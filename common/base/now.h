/* SPDX-License-Identifier: MIT */
/* The clocks of the system as one number. */
#ifndef MEMATTACH_NOW_H
#define MEMATTACH_NOW_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC, CLOCK_REALTIME … */
uint64_t now_ns(clockid_t clock);

#endif
