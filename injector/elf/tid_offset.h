/* SPDX-License-Identifier: MIT */
/* Where the C library keeps the kernel's thread id, how far from the thread pointer (arch/thread_block.h). */
#pragma once

#include "arch/thread_block.h"
#include "process/target_read.h"

#define TID_OFFSET_LIMIT THREAD_BLOCK_BYTES

struct tid_pair {
	uint64_t thread_pointer;
	int32_t tid; /* as the target sees it: the innermost NSpid of /proc/PID/task/TID/status */
};

/*
 * The offset, a multiple of 4 below TID_OFFSET_LIMIT, at which every thread has its tid; the smallest if
 * several fit. 0: none fits or count is 0 (offset 0 is the thread pointer itself). Threads that cannot be
 * read are passed over.
 */
uint32_t tid_offset_find(const struct target_memory *tm, const struct tid_pair *pairs, size_t count);
