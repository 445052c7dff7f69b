/* SPDX-License-Identifier: MIT */
#include "census/heap/other_heap.h"

#include "census/heap/jemalloc.h"
#include "census/heap/mallocng.h"
#include "census/heap/mimalloc.h"

#define SEARCH_BYTES (128ull << 20)

bool other_heap_search(struct census_memory *memory, other_heap_find_fn find, void *context)
{
	const struct budget whole = memory->budget;

	budget_start(&memory->budget, UINT64_MAX, SEARCH_BYTES);
	census_memory_refresh(memory);
	const bool found = find(context);
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
	s->kept += kept;
}

int other_heap_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, bool glibc,
                    struct extents *extents, struct err *e)
{
	*h = (struct other_heap){ 0 };
	int rc = jemalloc_take(h, maps, memory, extents, e);
	if (rc == 0 && !h->name)
		rc = mimalloc_take(h, maps, memory, extents, e);
	if (rc == 0 && !h->name && !glibc)
		rc = mallocng_take(h, maps, memory, extents, e);
	extents_sort(extents);
	return rc;
}
