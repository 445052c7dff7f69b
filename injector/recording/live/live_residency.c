/* SPDX-License-Identifier: MIT */
#include "recording/live/live_residency.h"

#include "base/now.h"
#include "recording/live/live_records.h"

#define CLOCK_EVERY 256u /* records */

static unsigned hundredths(uint64_t part, uint64_t bytes)
{
	return (unsigned)((double)part / (double)bytes * 100 + 0.5);
}

uint16_t live_residency_of(const struct resident_pages *pages, uint64_t address, uint64_t bytes)
{
	uint64_t swapped = 0, end;

	bytes = bytes ? bytes : 1;
	if (address + bytes < address)
		return 0;
	end = address + bytes;
	for (size_t i = resident_pages_from(pages, address); i < pages->count && pages->runs[i].start < end; i++) {
		const struct page_run *run = &pages->runs[i];
		if (run->swapped)
			swapped += (run->end < end ? run->end : end) - (run->start > address ? run->start : address);
	}
	return (uint16_t)DUMP_LIVE_RESIDENCY(hundredths(resident_pages_sum(pages, address, end), bytes),
	                                     hundredths(swapped, bytes));
}

void live_residency_mark(const struct dump_writer *w, const struct quick_scan *scan, const struct maps *maps)
{
	const uint64_t until_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + LIVE_RESIDENCY_NS;
	uint64_t n = 0;

	for (struct live_walk x = { .writer = w }; live_walk_next(&x);) {
		if (++n % CLOCK_EVERY == 0 && now_ns(CLOCK_THREAD_CPUTIME_ID) >= until_ns)
			return;
		const struct mapping *m = maps_find(maps, x.record.address);
		if (m && !scan->unfinished[m - maps->list])
			x.table.records[x.k].flags =
				(uint16_t)((x.record.flags & DUMP_LIVE_PART) |
			                   live_residency_of(&scan->pages, x.record.address, x.record.size));
	}
}
