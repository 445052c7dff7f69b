/* SPDX-License-Identifier: MIT */
#include "census/heap/anonymous_blocks.h"

#include <string.h>

#define BATCH 256u
#define IS_MAPPED 2u
#define V8_PAGE (256u << 10)
#define GO_HEAP 0xc000000000ull /* runtime/malloc.go: where its arenas begin */
#define GO_END 0x10000000000ull
#define JAVA_LEAST (1ull << 31)
#define JAVA_END (32ull << 30) /* within the reach of compressed pointers; behind it are its classes */
#define JAVA_CLASSES_END (36ull << 30)

struct page_start {
	uint64_t address;
	uint64_t words[6];
};

static int claim(struct anonymous_blocks *b, uint64_t start, uint64_t end, enum region_kind kind, const char *name,
                 struct err *e)
{
	return extents_add(b->extents, &(struct extent){ start, end, kind, name, 0 }, e);
}

/* A chunk of malloc with a mapping of its own; 0: none. From 2.43 on the size does not count its header. */
static uint64_t mapped_block(const struct anonymous_blocks *b, const struct page_start *p, uint64_t end)
{
	const bool newer = b->glibc->glibc.release >= 43;
	const uint64_t size = (p->words[1] & ~7ull) + (newer ? 16 : 0);

	if (!b->glibc->glibc.layout || (p->words[1] & 7) != IS_MAPPED || p->words[0] > newer || size % CENSUS_PAGE ||
	    !size || size > end - p->address)
		return 0;
	return size;
}

static uint64_t v8_chunk(const struct page_start *p, uint64_t end)
{
	const uint64_t *w = p->words, size = w[0];

	if (p->address % V8_PAGE || size % CENSUS_PAGE || size > end - p->address || !w[2] || w[2] % 8 ||
	    w[3] <= p->address || w[3] - p->address >= V8_PAGE / 4 || w[4] <= w[3] || w[4] > p->address + size ||
	    w[5] > size)
		return 0;
	return size;
}

/* What begins at this page: claims it. *until: where it ends. */
static int look(struct anonymous_blocks *b, const struct page_start *p, const struct mapping *m,
                const struct resident_pages *pages, uint64_t *until, struct err *e)
{
	const uint64_t block = mapped_block(b, p, m->end), chunk = block ? 0 : v8_chunk(p, m->end);

	if (block) {
		b->mapped_count++;
		b->mapped_bytes += block;
		heap_figures_add_block(b->figures, block, resident_pages_sum(pages, p->address, p->address + block));
		*until = p->address + block;
		return claim(b, p->address, *until, REGION_MAPPED, "", e);
	}
	if (chunk) {
		*until = p->address + chunk;
		return claim(b, p->address, *until, REGION_RUNTIME, "V8", e);
	}
	const uint64_t pool = python_pools_add(b->pools, p->address, p->words, m->end);
	if (!pool)
		return 0;
	*until = p->address + pool;
	struct extent *last = b->extents->count ? &b->extents->list[b->extents->count - 1] : NULL;
	if (last && last->kind == REGION_PYTHON && last->end == p->address) {
		last->end = *until;
		return 0;
	}
	return claim(b, p->address, *until, REGION_PYTHON, "", e);
}

struct batch {
	struct page_start starts[BATCH];
	struct target_piece pieces[BATCH];
	size_t count;
	uint64_t until; /* what was found goes so far */
};

static int look_at_batch(struct anonymous_blocks *b, struct batch *batch, const struct mapping *m,
                         struct census_memory *memory, struct err *e)
{
	int rc = target_read_batch(&memory->memory, batch->pieces, batch->count, ERR_IGNORED);

	for (size_t i = 0; i < batch->count && rc == -EFAULT; i++) /* a page has gone meanwhile */
		if (target_read(&memory->memory, batch->starts[i].address, batch->starts[i].words,
		                sizeof batch->starts[i].words, ERR_IGNORED) < 0)
			memset(batch->starts[i].words, 0, sizeof batch->starts[i].words);
	bool unread = rc < 0 && rc != -EFAULT;
	rc = 0;
	for (size_t i = 0; i < batch->count && rc == 0 && !unread; i++)
		if (batch->starts[i].address >= batch->until)
			rc = look(b, &batch->starts[i], m, memory->pages, &batch->until, e);
	batch->count = 0;
	return rc;
}

static int look_at_page(struct anonymous_blocks *b, struct batch *batch, uint64_t at, const struct mapping *m,
                        struct census_memory *memory, struct err *e)
{
	struct page_start *p = &batch->starts[batch->count];

	p->address = at;
	batch->pieces[batch->count++] = (struct target_piece){ at, sizeof p->words, p->words };
	return batch->count == BATCH && census_memory_in_time(memory) ? look_at_batch(b, batch, m, memory, e) : 0;
}

/* By its address alone; NULL: none. */
static const char *runtime_of(const struct anonymous_blocks *b, const struct mapping *m)
{
	if (m->start >= GO_HEAP && m->end <= GO_END && m->start % (4u << 20) == 0)
		return "Go";
	if (b->java && m->start >= JAVA_LEAST && m->end <= JAVA_END)
		return "Java";
	return b->java && m->start >= JAVA_END && m->end <= JAVA_CLASSES_END ? "Java classes" : NULL;
}

int anonymous_blocks_find(struct anonymous_blocks *b, const struct mapping *m, struct census_memory *memory,
                          struct err *e)
{
	const struct extents before = { b->extents->list, b->sorted };
	size_t next = extents_from(&before, m->start);
	struct batch batch = { .until = m->start };
	const char *runtime = runtime_of(b, m);
	int rc = 0;

	if (runtime)
		return claim(b, m->start, m->end, REGION_RUNTIME, runtime, e);
	for (size_t i = resident_pages_from(memory->pages, m->start);
	     i < memory->pages->count && memory->pages->runs[i].start < m->end && rc == 0; i++) {
		const struct page_run *run = &memory->pages->runs[i];
		uint64_t at = run->start > m->start ? run->start : m->start;
		const uint64_t end = run->end < m->end ? run->end : m->end;
		for (; at < end && !run->swapped && !memory->time_is_up && rc == 0; at += CENSUS_PAGE) {
			while (next < b->sorted && b->extents->list[next].end <= at)
				next++;
			if (next < b->sorted && b->extents->list[next].start <= at) {
				at = b->extents->list[next].end - CENSUS_PAGE;
				continue;
			}
			if (at < batch.until)
				at = (batch.until < end ? batch.until : end) - CENSUS_PAGE;
			else
				rc = look_at_page(b, &batch, at, m, memory, e);
		}
	}
	return rc < 0 || !batch.count ? rc : look_at_batch(b, &batch, m, memory, e);
}
