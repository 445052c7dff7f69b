/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* It ends at the thread pointer, and has no word with its own address in glibc. */
#define MUTEX_BYTES 48
#define THREAD_BLOCK_SELF 0
#define THREAD_BLOCK_BYTES 0x900u

static inline uint64_t thread_block_at(uint64_t thread_pointer, uint32_t distance)
{
	return thread_pointer - distance;
}
