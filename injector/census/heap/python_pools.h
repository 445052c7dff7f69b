/* SPDX-License-Identifier: MIT */
/* CPython's pools of small objects: how much of them is live. The layout of a pool is in anonymous_blocks.h. */
#pragma once

#include <stdint.h>

#define POOL_CLASSES 32u /* blocks of 16, 32 … 512 bytes */
#define POOL_HEADER 48u

struct python_pools {
	uint64_t pool_bytes; /* of a pool, once one was found; 0 before */
	uint64_t pools, live_blocks, live_bytes;
	uint64_t blocks[POOL_CLASSES]; /* live ones */
};

struct pool {
	uint32_t live, block_bytes, carved; /* carved: up to this offset it has been divided into blocks */
	uint64_t first_free;
};

/* Are these the six words in front of a pool, and of a pool of which size? 0: no. */
uint64_t pool_read(struct pool *pool, uint64_t address, const uint64_t words[6]);
/* Counts it if it is one, of the size of the others, and ends before end. How long it is; 0: it is none. */
uint64_t python_pools_add(struct python_pools *p, uint64_t address, const uint64_t words[6], uint64_t end);
