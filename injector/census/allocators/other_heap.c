/* SPDX-License-Identifier: MIT */
#include "census/allocators/other_heap.h"

#include <string.h>
#include <sys/mman.h>

#include "census/allocators/jemalloc.h"
#include "census/allocators/mallocng.h"
#include "census/allocators/mimalloc.h"
#include "census/allocators/tcmalloc.h"

#define SEARCH_BYTES (128ull << 20)
#define BEHIND 16u

bool other_heap_search(struct census_memory *memory, other_heap_find_fn find, void *context)
{
	const struct budget whole = memory->budget;

	budget_start(&memory->budget, UINT64_MAX, SEARCH_BYTES);
	census_memory_refresh(memory);
	memory->scattered = true;
	const bool found = find(context);
	memory->scattered = false;
	memory->budget = whole;
	census_memory_refresh(memory);
	return found;
}

struct other_size *other_heap_size(struct other_heap *h, uint64_t size)
{
	for (unsigned i = 0; i < h->size_count; i++)
		if (h->sizes[i].bytes == size)
			return &h->sizes[i];
	return NULL;
}

void other_heap_add(struct other_heap *h, uint64_t size, uint64_t blocks, uint64_t live, uint64_t kept)
{
	struct other_size *s = other_heap_size(h, size);

	h->live_blocks += blocks;
	h->live_bytes += blocks * size;
	h->live += live;
	h->freed += kept;
	if (!s && h->size_count == OTHER_SIZES)
		return;
	s = s ? s : &h->sizes[h->size_count++];
	s->bytes = size;
	s->blocks += blocks;
	s->live += live;
	s->kept += kept;
}

void other_heap_remove(struct other_heap *h, uint64_t size, uint64_t blocks, uint64_t there)
{
	struct other_size *s = other_heap_size(h, size);

	if (!s)
		return;
	blocks = blocks < s->blocks ? blocks : s->blocks;
	there = there < blocks * size ? there : blocks * size;
	there = there < h->live ? there : h->live;
	s->blocks -= blocks;
	s->live -= there < s->live ? there : s->live;
	s->kept += there;
	h->live_blocks -= blocks;
	h->live_bytes -= blocks * size;
	h->live -= there;
	h->freed += there;
}

void other_heap_remove_cached(struct other_heap *h, uint64_t size, uint64_t blocks)
{
	const struct other_size *s = other_heap_size(h, size);
	const uint64_t before = h->live_bytes;

	if (!s || !s->blocks)
		return;
	blocks = blocks < s->blocks ? blocks : s->blocks;
	other_heap_remove(h, size, blocks, (uint64_t)((double)s->live * (double)blocks / (double)s->blocks));
	h->cached_bytes += before - h->live_bytes;
}

int other_heap_each_words(struct other_heap *h, struct census_memory *memory, uint64_t table, uint64_t bytes,
                          other_heap_words_fn fn, void *context, struct err *e)
{
	uint64_t words[CENSUS_PAGE / 8];
	int rc = 0;

	for (uint64_t at = table; at < table + bytes && rc == 0;) {
		const uint64_t there = resident_pages_next(memory->pages, at);
		at = there > at ? there : at; /* a table may begin within a page */
		if (at >= table + bytes)
			break;
		const uint64_t next = (at | (CENSUS_PAGE - 1)) + 1, end = next < table + bytes ? next : table + bytes;
		h->over |= budget_work(&memory->budget, CENSUS_PAGE, ERR_IGNORED) < 0 || !census_memory_in_time(memory);
		if (h->over)
			break;
		if (census_memory_read(memory, at, words, end - at))
			rc = fn(context, words, (end - at) / 8, (at - table) / 8, e);
		at = end;
	}
	return rc;
}

bool other_heap_is_private(const struct mapping *m)
{
	return (!m->path[0] || !strcmp(m->path, "[heap]")) && !m->shared &&
	       (m->prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE);
}

bool other_heap_is_sparse(const uint64_t words[CENSUS_PAGE / 8], unsigned i)
{
	const unsigned end = i + 1 + BEHIND < CENSUS_PAGE / 8 ? i + 1 + BEHIND : CENSUS_PAGE / 8;
	unsigned used = 0;

	for (unsigned k = i + 1; k < end; k++)
		used += words[k] != 0;
	return used <= BEHIND / 2;
}

uint64_t other_heap_data_bytes(const struct mapping *m)
{
	const struct mapping *zeros = m + 1;
	const bool both = m->inode && !m->shared && m->prot & PROT_WRITE && zeros->start == m->end && !zeros->path[0] &&
	                  other_heap_is_private(zeros);

	return both ? zeros->end - m->start : 0;
}

const struct mapping *other_heap_next_module(const struct maps *maps, const struct mapping *last, uint64_t least)
{
	const uint64_t before = last ? other_heap_data_bytes(last) : least;
	const struct mapping *next = NULL;

	for (size_t i = 0; i + 1 < maps->count; i++) {
		const struct mapping *m = &maps->list[i];
		const uint64_t bytes = other_heap_data_bytes(m);
		if (bytes && (bytes > before || (bytes == before && m > last)) &&
		    (!next || bytes < other_heap_data_bytes(next)))
			next = m;
	}
	return next;
}

int other_heap_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, bool glibc,
                    struct extents *extents, struct err *e)
{
	*h = (struct other_heap){ 0 };
	int rc = jemalloc_take(h, maps, memory, extents, e);
	if (rc == 0 && !h->name)
		rc = mimalloc_take(h, maps, memory, extents, e);
	if (rc == 0 && !h->name)
		rc = tcmalloc_take(h, maps, memory, extents, e);
	if (rc == 0 && !h->name && !glibc)
		rc = mallocng_take(h, maps, memory, extents, e);
	extents_sort(extents);
	return rc;
}
