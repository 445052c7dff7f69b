/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* It ends at the thread pointer, and has no word with its own address in glibc. */
#define MUTEX_BYTES 48
#define THREAD_BLOCK_SELF 0
#define THREAD_BLOCK_BYTES 0x900u

static inline uint64_t thread_block_at(uint64_t thread_pointer, uint32_t distance)
{
	return thread_pointer - distance;
}

/* Above the thread pointer, where two words of the C library come first. */
static inline int64_t thread_block_tls(uint64_t distance, uint64_t bytes, bool *fits)
{
	(void)bytes;
	*fits = distance >= 16;
	return (int64_t)distance;
}
