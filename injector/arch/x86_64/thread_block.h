/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#define MUTEX_BYTES 40
#define THREAD_BLOCK_SELF 1
#define THREAD_BLOCK_BYTES 0x400u

static inline uint64_t thread_block_at(uint64_t thread_pointer, uint32_t distance)
{
	return thread_pointer + distance;
}
