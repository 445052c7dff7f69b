/* SPDX-License-Identifier: MIT */
#include "census/reach/block_space.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "arch/address_bits.h"
#include "base/grow.h"
#include "base/sorted.h"
#include "base/order.h"

#define NUMBER_BYTES 32u /* the least chunk */
#define HEADER_BYTES 16u
#define NEAR_LOG 26u /* as in block_space_near */
#define NEAR_BYTES ((1ull << (ADDRESS_BITS - NEAR_LOG)) / 8)
#define ADDRESS_END (1ull << ADDRESS_BITS)

static int add_part(struct block_space *b, const struct block_part *part, struct err *e)
{
	if (part->start >= part->end || part->end > ADDRESS_END)
		return 0;
	if (!grow_list(b->parts, b->count))
		return err_set(e, ENOMEM, "no memory for the parts of its heap");
	b->parts[b->count++] = *part;
	return 0;
}

ORDER_BY(compare, struct block_part, start);

/* Of two that overlap, which a process can make up, the first stays. */
static void number(struct block_space *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->count; i++)
		if (!kept || b->parts[kept - 1].end <= b->parts[i].start)
			b->parts[kept++] = b->parts[i];
	b->count = kept;
	for (size_t i = 0; i < b->count; i++) {
		struct block_part *p = &b->parts[i];
		p->first = b->number_count;
		b->number_count += (p->end - p->start) / NUMBER_BYTES + 1;
		for (uint64_t at = p->start >> NEAR_LOG; at <= (p->end + HEADER_BYTES) >> NEAR_LOG; at++)
			b->near[at / 64] |= 1ull << at % 64;
	}
}

static void *map_bits(size_t bytes)
{
	void *bits = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return bits == MAP_FAILED ? NULL : bits;
}

int block_space_open(struct block_space *b, const struct census_heap *heap, struct err *e)
{
	int rc = 0;

	*b = (struct block_space){ 0 };
	for (size_t i = 0; i < heap->glibc.segment_count && rc == 0; i++) {
		struct heap_segment *s = &heap->glibc.segments[i];
		rc = add_part(b, &(struct block_part){ .start = s->start, .end = s->end, .segment = s }, e);
	}
	for (size_t i = 0; i < heap->extents.count && rc == 0; i++) {
		const struct extent *x = &heap->extents.list[i];
		if (x->kind == REGION_MAPPED)
			rc = add_part(b, &(struct block_part){ .start = x->start, .end = x->end }, e);
	}
	if (rc < 0)
		return rc;
	if (b->count)
		qsort(b->parts, b->count, sizeof *b->parts, compare);
	b->near = map_bits(NEAR_BYTES + sizeof *b->near);
	if (!b->near)
		return err_set(e, ENOMEM, "no memory for which blocks are reached");
	number(b);
	if (b->number_count > UINT32_MAX)
		return err_set(e, E2BIG, "its heap is larger than 128 GiB");
	b->reached_bytes = (b->number_count / 64 + 1) * sizeof *b->reached;
	b->reached = map_bits(b->reached_bytes);
	return b->reached ? 0 : err_set(e, ENOMEM, "no memory for which blocks are reached");
}

void block_space_close(struct block_space *b)
{
	if (b->near)
		munmap(b->near, NEAR_BYTES + sizeof *b->near);
	if (b->reached)
		munmap(b->reached, b->reached_bytes);
	free(b->parts);
	*b = (struct block_space){ 0 };
}

size_t block_space_from(const struct block_space *b, uint64_t address)
{
	return SORTED_UP_TO(b->parts, b->count, end, address);
}

const struct block_part *block_space_part(struct block_space *b, uint64_t address)
{
	if (!b->last || address < b->last->start || address >= b->last->end) {
		const size_t i = block_space_from(b, address);
		if (i == b->count || b->parts[i].start > address)
			return NULL;
		b->last = &b->parts[i];
	}
	return b->last;
}

/* The live chunk that an address leads to; 0: none. */
static uint64_t chunk_of(const struct heap_segment *s, uint64_t address)
{
	const uint64_t chunk = address < s->top + HEADER_BYTES ? heap_marks_previous(&s->marks, address) : 0;

	return chunk && !heap_marks_is_free(&s->marks, chunk) ? chunk : 0;
}

/* Where a part begins another one, or a block of it, may end. */
static const struct block_part *part_of_pointer(struct block_space *b, uint64_t address)
{
	const struct block_part *before = address % CENSUS_PAGE < HEADER_BYTES && address >= HEADER_BYTES
	                                          ? block_space_part(b, address - HEADER_BYTES)
	                                          : NULL;

	return before ? before : block_space_part(b, address);
}

bool block_space_reach(struct block_space *b, uint64_t address, uint32_t *found)
{
	const struct block_part *p = part_of_pointer(b, address);
	const uint64_t chunk = !p || p->gone ? 0 : p->segment ? chunk_of(p->segment, address) : p->start;

	if (!chunk)
		return false;
	const uint64_t n = p->first + (chunk - p->start) / NUMBER_BYTES;
	if (b->reached[n / 64] >> n % 64 & 1)
		return false;
	b->reached[n / 64] |= 1ull << n % 64;
	*found = (uint32_t)n;
	return true;
}

bool block_space_is_reached(const struct block_space *b, uint32_t n)
{
	return b->reached[n / 64] >> n % 64 & 1;
}

static struct block block_at(const struct block_part *p, uint64_t chunk)
{
	const struct heap_segment *s = p->segment;
	const uint64_t end = s ? heap_segment_chunk_end(s, chunk) + 8 : p->end;

	return (struct block){ .start = chunk + HEADER_BYTES,
		               .end = end < p->end ? end : p->end,
		               .number = (uint32_t)(p->first + (chunk - p->start) / NUMBER_BYTES) };
}

struct block block_space_block(const struct block_space *b, uint32_t n)
{
	const struct block_part *p = &b->parts[SORTED_UP_TO(b->parts, b->count, first, n) - 1];
	uint64_t chunk = p->start + (n - p->first) * NUMBER_BYTES;

	if (p->segment && !heap_marks_begins(&p->segment->marks, chunk))
		chunk += 16;
	if (p->gone || (p->segment && (!heap_marks_begins(&p->segment->marks, chunk) || chunk >= p->segment->top ||
	                               heap_marks_is_free(&p->segment->marks, chunk))))
		return (struct block){ .start = chunk, .end = chunk, .number = n };
	return block_at(p, chunk);
}

bool block_space_next(const struct block_part *p, uint64_t address, struct block *block)
{
	const struct heap_segment *s = p->segment;

	if (address >= p->end)
		return false;
	if (!s) {
		*block = block_at(p, p->start);
		return true;
	}
	uint64_t chunk = address > s->start ? heap_marks_previous(&s->marks, address) : 0;
	if (!chunk)
		chunk = heap_marks_next(&s->marks, s->start);
	else if (heap_segment_chunk_end(s, chunk) + 8 <= address)
		chunk = heap_segment_chunk_end(s, chunk);
	while (chunk < s->top && heap_marks_is_free(&s->marks, chunk))
		chunk = heap_segment_chunk_end(s, chunk);
	if (chunk >= s->top)
		return false;
	*block = block_at(p, chunk);
	return true;
}
