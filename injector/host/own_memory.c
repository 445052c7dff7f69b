/* SPDX-License-Identifier: MIT */
#include "host/own_memory.h"

#include <malloc.h>

#define LARGE_BYTES (128 << 10) /* what glibc begins with; to set it keeps it from growing */

void own_memory_keep_small(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
}

void own_memory_give_back(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
