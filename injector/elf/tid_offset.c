/* SPDX-License-Identifier: MIT */
#include "elf/tid_offset.h"

#include <stdbool.h>
#include <string.h>

#define PAGE_BYTES 4096u

/* The word so far from the thread pointer, in what was read from the lower end on. */
static int32_t word_at(const int32_t words[TID_OFFSET_LIMIT / 4], uint64_t thread_pointer, uint64_t start,
                       uint32_t distance)
{
	return words[(thread_block_at(thread_pointer, distance) - start) / 4];
}

/* What is read from the lower end on. Below a thread pointer the C library's description may begin with its mapping:
 * then what is before its last page stays 0, which no thread has as its number. */
static bool read_around(const struct target_memory *tm, uint64_t thread_pointer, uint64_t start,
                        int32_t words[TID_OFFSET_LIMIT / 4])
{
	const uint64_t page = (thread_pointer - 1) & ~(uint64_t)(PAGE_BYTES - 1);

	if (target_read(tm, start, words, TID_OFFSET_LIMIT, ERR_IGNORED) == 0)
		return true;
	if (start >= page || page >= thread_pointer)
		return false;
	memset(words, 0, TID_OFFSET_LIMIT);
	return target_read(tm, page, (uint8_t *)words + (page - start), thread_pointer - page, ERR_IGNORED) == 0;
}

uint32_t tid_offset_find(const struct target_memory *tm, const struct tid_pair *pairs, size_t count)
{
	bool fits[TID_OFFSET_LIMIT / 4];
	size_t read = 0;

	memset(fits, true, sizeof fits);
	for (size_t i = 0; i < count; i++) {
		const uint64_t tp = pairs[i].thread_pointer, far = thread_block_at(tp, TID_OFFSET_LIMIT);
		const uint64_t start = far < tp ? far : tp;
		int32_t words[TID_OFFSET_LIMIT / 4];

		if (!read_around(tm, tp, start, words))
			continue;
		read++;
		for (uint32_t w = 1; w < TID_OFFSET_LIMIT / 4; w++)
			if (word_at(words, tp, start, w * 4) != pairs[i].tid)
				fits[w] = false;
	}
	for (uint32_t w = 1; read > 0 && w < TID_OFFSET_LIMIT / 4; w++)
		if (fits[w])
			return w * 4;
	return 0;
}
