/* SPDX-License-Identifier: MIT */
/* Lists that grow by one element. Not for the payload. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define GROW_FIRST 16u /* a power of two */

static inline bool grow_(void *list, size_t count, size_t element_bytes)
{
	void *old, *more;

	if (count % GROW_FIRST || (count & (count - 1)))
		return true;
	memcpy(&old, list, sizeof old);
	more = reallocarray(old, count ? 2 * count : GROW_FIRST, element_bytes);
	if (!more)
		return false;
	memcpy(list, &more, sizeof more);
	return true;
}

/*
 * Makes room for element number count in list, a pointer that starts as NULL, grows by nothing else and belongs to
 * free(). The room is the next power of two, so nothing but the count has to be remembered. False: no memory, the list
 * is as it was.
 */
#define grow_list(list, count) grow_(&(list), (count), sizeof *(list))
