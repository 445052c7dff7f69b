/* SPDX-License-Identifier: MIT */
/* The clocks of the system as one number. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC, CLOCK_REALTIME … */
uint64_t now_ns(clockid_t clock);
