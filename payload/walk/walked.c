/* SPDX-License-Identifier: MIT */
/* What the last walk has read, see walked.h. */
#include "walk/walked.h"

#include "dump_format.h"
#include "walk/rule_cache.h"

#define LINE_BYTES 64u
#define WALKED_FRAMES 60u
#define WALKED_LINES 48u /* the innermost; a prefetcher would have to be told of each page anew */

/* All atomic. Two lines, since a third would have to be fetched too. */
static struct __attribute__((aligned(2 * LINE_BYTES))) {
	uint32_t count;
	uint32_t lines;
	uint16_t entries[WALKED_FRAMES];
} walked;

_Static_assert(sizeof(walked) == 2 * LINE_BYTES && UNWIND_CACHE_LOG2 <= 16, "walked");

void walked_prefetch(uint64_t sp)
{
	uint32_t lines = __atomic_load_n(&walked.lines, __ATOMIC_RELAXED);
	uint32_t count = __atomic_load_n(&walked.count, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < count; i++)
		__builtin_prefetch(&unwind_cache[__atomic_load_n(&walked.entries[i], __ATOMIC_RELAXED)]);
	for (uint32_t i = 0; i < lines; i++)
		__builtin_prefetch((const void *)(sp + (uint64_t)i * LINE_BYTES));
}

void walked_keep(const uint64_t *frames, uint32_t count, uint64_t bytes)
{
	uint64_t lines = bytes / LINE_BYTES + 1;

	if (count > WALKED_FRAMES)
		count = WALKED_FRAMES;
	for (uint32_t i = 0; i < count; i++)
		__atomic_store_n(&walked.entries[i], unwind_cache_entry_index(DUMP_FRAME_ADDRESS(frames[i])),
		                 __ATOMIC_RELAXED);
	__atomic_store_n(&walked.count, count, __ATOMIC_RELAXED);
	__atomic_store_n(&walked.lines, (uint32_t)(lines < WALKED_LINES ? lines : WALKED_LINES), __ATOMIC_RELAXED);
}
