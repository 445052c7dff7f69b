/* SPDX-License-Identifier: MIT */
/* A library with GOT entries of its own, of which bench/scale.c loads many copies. */
#include <stdlib.h>

void *scale_allocate(size_t bytes);

void *scale_allocate(size_t bytes)
{
	void *block = malloc(bytes);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}
