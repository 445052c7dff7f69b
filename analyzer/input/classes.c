/* SPDX-License-Identifier: MIT */
#include "input/classes.h"

#include <math.h>

/* In nanoseconds; the last class has no end. */
static const double lifetimes[] = { 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 6e10, 6e11, 3.6e12, 3.6e13, 8.64e13 };
#define LIFETIMES (sizeof lifetimes / sizeof lifetimes[0])

size_t class_of(enum class_kind kind, uint64_t value)
{
	size_t i = 0;

	if (kind == CLASS_SIZE)
		return value ? 64u - (size_t)__builtin_clzll(value) : 0;
	while (i < LIFETIMES && (double)value >= lifetimes[i])
		i++;
	return i;
}

void class_limits(enum class_kind kind, size_t number, double *low, double *high)
{
	if (kind == CLASS_SIZE) {
		*low = number ? ldexp(1, (int)number - 1) : 0;
		*high = number < 64 ? ldexp(1, (int)number) : INFINITY;
		return;
	}
	*low = number ? lifetimes[(number < LIFETIMES ? number : LIFETIMES) - 1] / 1e9 : 0;
	*high = number < LIFETIMES ? lifetimes[number] / 1e9 : INFINITY;
}
