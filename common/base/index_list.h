/* SPDX-License-Identifier: MIT */
/*
 * Lists within one array: each element has a uint32_t member `next`, the index of the next one of its list + 1, and 0
 * in the last. A list is the index of its first element + 1; 0 is the empty one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline void index_list_join_(void *elements, size_t element_bytes, size_t next, uint32_t *list, uint32_t more)
{
	uint32_t *last = NULL;

	for (uint32_t at = more; at; at = *last)
		last = (uint32_t *)((char *)elements + (at - 1) * element_bytes + next);
	if (!last)
		return;
	*last = *list;
	*list = more;
}

/* Puts the list `more` before *list; it belongs to nothing else from then on. */
#define index_list_join(elements, list, more)                                                                          \
	index_list_join_(elements, sizeof *(elements), offsetof(__typeof__(*(elements)), next), list, more)
