/* SPDX-License-Identifier: MIT */
#include "touch/patches/detour_place.h"

#include <stdbool.h>
#include <string.h>

#define PAGE_BYTES 4096ull
#define REACH (0x7fffffffull - (1u << 20)) /* of a jump, from and to any byte of module and area */
#define LOWEST 0x10000ull                  /* vm.mmap_min_addr is no larger */
#define GROWTH (16ull << 20)               /* left between an area and what may grow towards it */
#define STEP (16ull << 20)                 /* left above an area for each place that was taken meanwhile */

static bool grows_up(const struct mapping *m)
{
	return m && !strcmp(m->path, "[heap]");
}

static bool grows_down(const struct mapping *m)
{
	return m && !strcmp(m->path, "[stack]");
}

/* In the gap [start, end) between two mappings, which has room for bytes and for free_above: the place for bytes under
 * these. 0: none. */
static uint64_t place_in(uint64_t start, uint64_t end, uint64_t bytes, uint64_t free_above, const struct mapping *below,
                         const struct mapping *above)
{
	if (grows_up(below))
		start += GROWTH;
	if (grows_down(above))
		end = end > GROWTH ? end - GROWTH : 0;
	return end > start && end - start >= bytes + free_above ? (end - free_above - bytes) & ~(PAGE_BYTES - 1) : 0;
}

static bool reaches(uint64_t at, uint64_t bytes, uint64_t start, uint64_t end)
{
	uint64_t low = at < start ? at : start, high = at + bytes > end ? at + bytes : end;

	return high - low <= REACH;
}

/* For a module that lies in [start, end): in the nearest such gap below it, else above. 0: there is none. */
static uint64_t find_place(const struct maps *maps, uint64_t start, uint64_t end, uint64_t bytes, uint64_t free_above)
{
	uint64_t above_it = 0;

	for (size_t i = maps->count + 1; i-- > 0;) {
		const struct mapping *below = i ? &maps->list[i - 1] : NULL;
		const struct mapping *above = i < maps->count ? &maps->list[i] : NULL;
		uint64_t from = below ? below->end : LOWEST, to = above ? above->start : 0;
		uint64_t at = to > from ? place_in(from, to, bytes, free_above, below, above) : 0;
		if (at < LOWEST || !reaches(at, bytes, start, end))
			continue;
		if (at < start)
			return at;
		above_it = at;
	}
	return above_it;
}

uint64_t detour_place(const struct maps *maps, uint64_t start, uint64_t end, uint64_t bytes, unsigned taken)
{
	uint64_t at = find_place(maps, start, end, bytes, taken * STEP);

	return at ? at : find_place(maps, start, end, bytes, 0);
}
