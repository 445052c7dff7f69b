/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* The generic timer. */
static inline uint64_t cycles_now(void)
{
	uint64_t count;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
}
