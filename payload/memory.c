/* SPDX-License-Identifier: MIT */
/* The functions that the compiler may call by itself in a freestanding program. Not part of the hosted build. */
#include <stddef.h>
#include <stdint.h>

#include "payload.h"

HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
HIDDEN void *memmove(void *to, const void *from, size_t bytes);
HIDDEN void *memset(void *to, int value, size_t bytes);
HIDDEN int memcmp(const void *a, const void *b, size_t bytes);

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	while (bytes--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	if (t < f)
		return memcpy(to, from, bytes);
	while (bytes--)
		t[bytes] = f[bytes];
	return to;
}

void *memset(void *to, int value, size_t bytes)
{
	uint8_t *t = to;

	while (bytes--)
		*t++ = (uint8_t)value;
	return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
	const uint8_t *x = a, *y = b;

	for (size_t i = 0; i < bytes; i++) {
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	}
	return 0;
}
