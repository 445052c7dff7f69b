/* SPDX-License-Identifier: MIT */
#include "census/heap/python_pools.h"

#define ARENAS_MAX 1000000u

static const uint32_t sizes[] = { 16u << 10, 4u << 10 };

uint64_t pool_read(struct pool *pool, uint64_t address, const uint64_t words[6])
{
	const uint32_t live = (uint32_t)words[0], arena = (uint32_t)words[4], size_class = (uint32_t)(words[4] >> 32);
	const uint32_t carved = (uint32_t)words[5], last = (uint32_t)(words[5] >> 32);
	const uint32_t block = 16 * (size_class + 1);

	if (size_class >= POOL_CLASSES || arena >= ARENAS_MAX)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		const uint32_t size = sizes[i];
		if (address % size || last != size - block || carved < POOL_HEADER + block || carved > size + block ||
		    (carved - POOL_HEADER) % block || live > (size - POOL_HEADER) / block ||
		    (words[1] && words[1] - address >= size))
			continue;
		*pool = (struct pool){ live, block, carved < size ? carved : size, words[1] };
		return size;
	}
	return 0;
}

uint64_t python_pools_add(struct python_pools *p, uint64_t address, const uint64_t words[6], uint64_t end)
{
	struct pool pool;
	const uint64_t size = pool_read(&pool, address, words);

	if (!size || (p->pool_bytes && p->pool_bytes != size) || size > end - address)
		return 0;
	p->pool_bytes = size;
	p->pools++;
	p->live_blocks += pool.live;
	p->live_bytes += (uint64_t)pool.live * pool.block_bytes;
	p->blocks[pool.block_bytes / 16 - 1] += pool.live;
	return size;
}
