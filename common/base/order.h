/* SPDX-License-Identifier: MIT */
/* Functions that compare two elements, for qsort and bsearch, by what each of them is. */
#pragma once

#define ORDER_OF_(x, y) (((x) > (y)) - ((x) < (y)))

/* The least field first. */
#define ORDER_BY(name, type, field)                                                                                    \
	static int name(const void *a, const void *b)                                                                  \
	{                                                                                                              \
		const type *x = a, *y = b;                                                                             \
                                                                                                                       \
		return ORDER_OF_(x->field, y->field);                                                                  \
	}

/* The least first field first, of equal ones the least second one. */
#define ORDER_BY_BOTH(name, type, first, second)                                                                       \
	static int name(const void *a, const void *b)                                                                  \
	{                                                                                                              \
		const type *x = a, *y = b;                                                                             \
                                                                                                                       \
		return ORDER_OF_(x->first, y->first) ?: ORDER_OF_(x->second, y->second);                               \
	}

/* Numbers, the least first. */
#define ORDER_NUMBERS(name, type)                                                                                      \
	static int name(const void *a, const void *b)                                                                  \
	{                                                                                                              \
		const type *x = a, *y = b;                                                                             \
                                                                                                                       \
		return ORDER_OF_(*x, *y);                                                                              \
	}
