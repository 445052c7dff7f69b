/* SPDX-License-Identifier: MIT */
#include "census/pages/resident_pages.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/sorted.h"

int resident_pages_add(struct resident_pages *p, const struct page_run *run, struct err *e)
{
	struct page_run *last = p->count ? &p->runs[p->count - 1] : NULL;

	if (last && last->end == run->start && last->swapped == run->swapped && last->file == run->file &&
	    last->huge == run->huge) {
		last->end = run->end;
		return 0;
	}
	if (!grow_list(p->runs, p->count))
		return err_set(e, ENOMEM, "no memory for which pages are there");
	p->runs[p->count++] = *run;
	return 0;
}

void resident_pages_free(struct resident_pages *p)
{
	free(p->runs);
	*p = (struct resident_pages){ 0 };
}

size_t resident_pages_from(const struct resident_pages *p, uint64_t address)
{
	return SORTED_UP_TO(p->runs, p->count, end, address);
}

uint64_t resident_pages_sum(const struct resident_pages *p, uint64_t start, uint64_t end)
{
	uint64_t sum = 0;

	for (size_t i = resident_pages_from(p, start); i < p->count && p->runs[i].start < end; i++) {
		const struct page_run *run = &p->runs[i];
		if (!run->swapped)
			sum += (run->end < end ? run->end : end) - (run->start > start ? run->start : start);
	}
	return sum;
}

bool resident_pages_hold(const struct resident_pages *p, uint64_t start, uint64_t end)
{
	return resident_pages_sum(p, start, end) == end - start;
}

uint64_t resident_pages_next(const struct resident_pages *p, uint64_t from)
{
	for (size_t i = resident_pages_from(p, from); i < p->count; i++)
		if (!p->runs[i].swapped)
			return p->runs[i].start > from ? p->runs[i].start : from;
	return UINT64_MAX;
}

uint64_t resident_pages_next_multiple(const struct resident_pages *p, uint64_t from, uint64_t bytes)
{
	uint64_t at = from, there = 0;

	while (there != at && at <= UINT64_MAX - bytes) {
		there = (at + bytes - 1) / bytes * bytes;
		at = resident_pages_next(p, there);
	}
	return at;
}
