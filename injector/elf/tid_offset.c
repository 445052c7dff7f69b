/* SPDX-License-Identifier: MIT */
#include "elf/tid_offset.h"

#include <stdbool.h>
#include <string.h>

uint32_t tid_offset_find(const struct target_memory *tm, const struct tid_pair *pairs, size_t count)
{
	bool fits[TID_OFFSET_LIMIT / 4];
	size_t read = 0;

	memset(fits, true, sizeof fits);
	for (size_t i = 0; i < count; i++) {
		int32_t words[TID_OFFSET_LIMIT / 4];
		struct err ignored;

		if (target_read(tm, pairs[i].thread_pointer, words, sizeof words, &ignored))
			continue;
		read++;
		for (size_t w = 0; w < TID_OFFSET_LIMIT / 4; w++)
			if (words[w] != pairs[i].tid)
				fits[w] = false;
	}
	for (uint32_t w = 1; read > 0 && w < TID_OFFSET_LIMIT / 4; w++)
		if (fits[w])
			return w * 4;
	return 0;
}
