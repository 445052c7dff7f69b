/* SPDX-License-Identifier: MIT */
/*
 * Searching an array that is sorted by a uint64_t member of its elements: how many elements have one that is below a
 * value, or not above it. They come first, so this is also the index of the first element of the others.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SORTED_BELOW(list, count, member, value)                                                                       \
	sorted_before(list, count, sizeof *(list), SORTED_OFFSET(list, member), value, 0)
#define SORTED_UP_TO(list, count, member, value)                                                                       \
	sorted_before(list, count, sizeof *(list), SORTED_OFFSET(list, member), value, 1)

/* A member of another size does not compile. */
#define SORTED_OFFSET(list, member)                                                                                    \
	(offsetof(__typeof__(*(list)), member) + 0 * sizeof(char[sizeof((list)->member) == sizeof(uint64_t) ? 1 : -1]))

static inline size_t sorted_before(const void *list, size_t count, size_t element_bytes, size_t offset, uint64_t value,
                                   int with_equal)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t key = *(const uint64_t *)((const char *)list + middle * element_bytes + offset);
		if (key < value || (with_equal && key == value))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
