/* SPDX-License-Identifier: MIT */
#include "census/heap/heap_marks.h"

#include <sys/mman.h>

#define GRANULE 16u

int heap_marks_open(struct heap_marks *m, uint64_t start, uint64_t end, struct err *e)
{
	const size_t bytes = (size_t)((end - start) / GRANULE / 64 + 1) * sizeof(uint64_t);
	char *bits = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bits == MAP_FAILED)
		return err_set(e, ENOMEM, "no memory for where the blocks of its heap begin");
	*m = (struct heap_marks){ start, end, (uint64_t *)bits, (uint64_t *)(bits + bytes), bytes };
	return 0;
}

void heap_marks_close(struct heap_marks *m)
{
	if (m->begins)
		munmap(m->begins, 2 * m->bytes);
	*m = (struct heap_marks){ 0 };
}

static bool get(const uint64_t *bits, uint64_t bit)
{
	return bits[bit / 64] >> bit % 64 & 1;
}

static void set(uint64_t *bits, uint64_t bit)
{
	bits[bit / 64] |= 1ull << bit % 64;
}

void heap_marks_begin(struct heap_marks *m, uint64_t chunk, bool is_free)
{
	set(m->begins, (chunk - m->start) / GRANULE);
	if (is_free)
		heap_marks_free(m, chunk);
}

void heap_marks_free(struct heap_marks *m, uint64_t chunk)
{
	set(m->free, (chunk - m->start) / GRANULE);
}

void heap_marks_clear(struct heap_marks *m, uint64_t chunk, uint64_t end)
{
	/* Of what is between chunks, which may be very long, nothing is written. */
	for (uint64_t at = heap_marks_next(m, chunk); at < end; at = heap_marks_next(m, at)) {
		const uint64_t bit = (at - m->start) / GRANULE;
		m->begins[bit / 64] &= ~(1ull << bit % 64);
		m->free[bit / 64] &= ~(1ull << bit % 64);
	}
}

bool heap_marks_begins(const struct heap_marks *m, uint64_t address)
{
	return address >= m->start && address < m->end && (address - m->start) % GRANULE == 0 &&
	       get(m->begins, (address - m->start) / GRANULE);
}

bool heap_marks_is_free(const struct heap_marks *m, uint64_t chunk)
{
	return get(m->free, (chunk - m->start) / GRANULE);
}

uint64_t heap_marks_next(const struct heap_marks *m, uint64_t address)
{
	const uint64_t last = (m->end - m->start) / GRANULE;

	for (uint64_t bit = (address - m->start + GRANULE - 1) / GRANULE; bit < last; bit = (bit / 64 + 1) * 64) {
		const uint64_t rest = m->begins[bit / 64] >> bit % 64;
		if (!rest)
			continue;
		bit += (uint64_t)__builtin_ctzll(rest);
		return bit < last ? m->start + bit * GRANULE : m->end;
	}
	return m->end;
}

uint64_t heap_marks_previous(const struct heap_marks *m, uint64_t address)
{
	for (uint64_t bit = (address - m->start) / GRANULE; bit > 0; bit = (bit - 1) / 64 * 64) {
		const uint64_t below = m->begins[(bit - 1) / 64] << (63 - (bit - 1) % 64);
		if (below)
			return m->start + (bit - 1 - (uint64_t)__builtin_clzll(below)) * GRANULE;
	}
	return 0;
}
