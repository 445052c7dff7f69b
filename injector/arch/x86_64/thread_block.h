/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MUTEX_BYTES 40
#define THREAD_BLOCK_SELF 1
#define THREAD_BLOCK_BYTES 0x400u

static inline uint64_t thread_block_at(uint64_t thread_pointer, uint32_t distance)
{
	return thread_pointer + distance;
}

/* Below the thread pointer. */
static inline int64_t thread_block_tls(uint64_t distance, uint64_t bytes, bool *fits)
{
	*fits = bytes <= distance;
	return -(int64_t)distance;
}
