/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <x86intrin.h>

static inline uint64_t cycles_now(void)
{
	return __rdtsc();
}
