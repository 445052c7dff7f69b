/* SPDX-License-Identifier: MIT */
#include "census/pages/page_sums.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/grow.h"
#include "base/sorted.h"

#define NOT_READ 0u
#define CHANGED 1u
#define LANES 4u

static int add_range(struct page_sums *s, uint64_t start, uint64_t end, struct err *e)
{
	struct page_range *last = s->count ? &s->ranges[s->count - 1] : NULL;

	if (last && last->end == start) {
		last->end = end;
	} else {
		if (!grow_list(s->ranges, s->count))
			return err_set(e, ENOMEM, "no memory for what its pages hold");
		s->ranges[s->count++] = (struct page_range){ start, end, s->page_count };
	}
	s->page_count += (end - start) / CENSUS_PAGE;
	return 0;
}

int page_sums_open(struct page_sums *s, const struct resident_pages *pages, struct err *e)
{
	int rc = 0;

	*s = (struct page_sums){ 0 };
	for (size_t i = 0; i < pages->count && rc == 0; i++)
		if (!pages->runs[i].swapped)
			rc = add_range(s, pages->runs[i].start, pages->runs[i].end, e);
	if (rc < 0)
		return rc;
	void *sums = mmap(NULL, (s->page_count + 1) * sizeof *s->sums, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sums == MAP_FAILED)
		return err_set(e, ENOMEM, "no memory for what its pages hold");
	s->sums = sums;
	return 0;
}

void page_sums_close(struct page_sums *s)
{
	if (s->sums)
		munmap(s->sums, (s->page_count + 1) * sizeof *s->sums);
	free(s->ranges);
	*s = (struct page_sums){ 0 };
}

static uint64_t turn(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

/* The rounds of xxHash64, whose constants these are: four lanes that do not wait for each other. */
uint64_t page_sum(const void *page)
{
	uint64_t lanes[LANES] = { 1, 2, 3, 4 }, sum = 0;

	for (size_t i = 0; i < CENSUS_PAGE; i += 8 * LANES) {
		uint64_t words[LANES];
		memcpy(words, (const uint8_t *)page + i, sizeof words);
		for (unsigned k = 0; k < LANES; k++)
			lanes[k] = turn(lanes[k] + words[k] * 0xc2b2ae3d27d4eb4full, 31) * 0x9e3779b185ebca87ull;
	}
	for (unsigned k = 0; k < LANES; k++)
		sum = turn(sum ^ lanes[k], 27) * 0x9e3779b185ebca87ull + 0x85ebca77c2b2ae63ull;
	sum ^= sum >> 32;
	return sum <= CHANGED ? CHANGED + 1 : sum;
}

/* The place of a page, and how many more of the same range follow it; NULL: it is in none. */
static uint64_t *place_of(struct page_sums *s, uint64_t page, uint64_t *more)
{
	const size_t i = SORTED_UP_TO(s->ranges, s->count, end, page);

	if (i == s->count || s->ranges[i].start > page)
		return NULL;
	*more = (s->ranges[i].end - page) / CENSUS_PAGE;
	return &s->sums[s->ranges[i].first + (page - s->ranges[i].start) / CENSUS_PAGE];
}

void page_sums_note(struct page_sums *s, uint64_t start, const void *data, size_t bytes)
{
	uint64_t more = 0;
	uint64_t *place = NULL;

	for (size_t at = 0; at + CENSUS_PAGE <= bytes; at += CENSUS_PAGE) {
		if (more)
			place++;
		else
			place = place_of(s, start + at, &more);
		if (!place)
			continue;
		more--;
		const uint64_t sum = page_sum((const uint8_t *)data + at);
		*place = *place == NOT_READ || *place == sum ? sum : CHANGED;
	}
}

void page_sums_forget(struct page_sums *s, uint64_t start, uint64_t end)
{
	start -= start % CENSUS_PAGE;
	for (size_t i = SORTED_UP_TO(s->ranges, s->count, end, start); i < s->count && s->ranges[i].start < end; i++) {
		const struct page_range *r = &s->ranges[i];
		for (uint64_t at = start > r->start ? start : r->start; at < end && at < r->end; at += CENSUS_PAGE)
			s->sums[r->first + (at - r->start) / CENSUS_PAGE] = CHANGED;
	}
}

bool page_sums_same(struct page_sums *s, uint64_t page, const void *data)
{
	uint64_t more;
	uint64_t *place = place_of(s, page, &more);

	if (!place)
		return false;
	if (*place == page_sum(data))
		return true;
	*place = CHANGED;
	return false;
}
