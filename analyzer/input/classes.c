/* SPDX-License-Identifier: MIT */
#include "input/classes.h"

#include <math.h>

#include "dump_format.h"

/* In nanoseconds; the last class has no end. */
static const double lifetimes[] = { 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 6e10, 6e11, 3.6e12, 3.6e13, 8.64e13 };
#define LIFETIMES (sizeof lifetimes / sizeof lifetimes[0])

enum residency residency_of(unsigned flags, bool freed)
{
	const unsigned present = DUMP_LIVE_PRESENT(flags), swapped = DUMP_LIVE_SWAPPED(flags);

	if (freed)
		return RESIDENCY_FREED;
	if (!(flags & DUMP_LIVE_LOOKED_AT) || present + swapped > 101) /* both were rounded */
		return RESIDENCY_UNKNOWN;
	return present >= 99                  ? RESIDENCY_PRESENT
	       : swapped >= 50                ? RESIDENCY_SWAPPED
	       : present == 0 && swapped == 0 ? RESIDENCY_ABSENT
	                                      : RESIDENCY_PARTLY;
}

const char *residency_name(enum residency residency)
{
	static const char *const names[RESIDENCY_COUNT] = {
		[RESIDENCY_PRESENT] = "present",       [RESIDENCY_PARTLY] = "partly present",
		[RESIDENCY_SWAPPED] = "swapped out",   [RESIDENCY_ABSENT] = "not resident",
		[RESIDENCY_UNKNOWN] = "not looked at", [RESIDENCY_FREED] = "freed before the end",
	};

	return residency < RESIDENCY_COUNT ? names[residency] : "";
}

size_t class_of(enum class_kind kind, uint64_t value)
{
	size_t i = 0;

	if (kind == CLASS_RESIDENCY)
		return value;
	if (kind == CLASS_SIZE)
		return value ? 64u - (size_t)__builtin_clzll(value) : 0;
	while (i < LIFETIMES && (double)value >= lifetimes[i])
		i++;
	return i;
}

void class_limits(enum class_kind kind, size_t number, double *low, double *high)
{
	if (kind == CLASS_RESIDENCY) {
		*low = (double)number;
		*high = (double)number + 1;
		return;
	}
	if (kind == CLASS_SIZE) {
		*low = number ? ldexp(1, (int)number - 1) : 0;
		*high = number < 64 ? ldexp(1, (int)number) : INFINITY;
		return;
	}
	*low = number ? lifetimes[(number < LIFETIMES ? number : LIFETIMES) - 1] / 1e9 : 0;
	*high = number < LIFETIMES ? lifetimes[number] / 1e9 : INFINITY;
}
