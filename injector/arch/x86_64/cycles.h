/* SPDX-License-Identifier: MIT */
#ifndef MEMATTACH_X86_64_CYCLES_H
#define MEMATTACH_X86_64_CYCLES_H

#include <stdint.h>
#include <x86intrin.h>

static inline uint64_t cycles_now(void)
{
	return __rdtsc();
}

#endif
