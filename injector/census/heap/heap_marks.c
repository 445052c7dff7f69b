/* SPDX-License-Identifier: MIT */
#include "census/heap/heap_marks.h"

#include <sys/mman.h>

#define GRANULE 16u

int heap_marks_open(struct heap_marks *m, uint64_t start, uint64_t end, struct err *e)
{
	const size_t bytes = (size_t)((end - start) / GRANULE / 64 + 1) * sizeof(uint64_t);
	const size_t words = (bytes / 512 + 1) * sizeof(uint64_t), pages = (words / 512 + 1) * sizeof(uint64_t);
	const size_t mapped = 2 * bytes + words + pages;
	char *bits = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bits == MAP_FAILED)
		return err_set(e, ENOMEM, "no memory for where the blocks of its heap begin");
	*m = (struct heap_marks){ .start = start,
		                  .end = end,
		                  .begins = (uint64_t *)bits,
		                  .free = (uint64_t *)(bits + bytes),
		                  .bytes = bytes,
		                  .words = (uint64_t *)(bits + 2 * bytes),
		                  .pages = (uint64_t *)(bits + 2 * bytes + words),
		                  .mapped = mapped };
	return 0;
}

void heap_marks_close(struct heap_marks *m)
{
	if (m->begins)
		munmap(m->begins, m->mapped);
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
	const uint64_t bit = (chunk - m->start) / GRANULE;

	set(m->begins, bit);
	set(m->words, bit / 64);
	set(m->pages, bit / 64 / 64);
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

/* The first word from `word` on, up to last, that may have a bit set; last: none. */
static uint64_t next_word(const struct heap_marks *m, uint64_t word, uint64_t last)
{
	while (word < last) {
		const uint64_t rest = m->words[word / 64] >> word % 64;
		if (rest)
			return word + (uint64_t)__builtin_ctzll(rest);
		word = (word / 64 + 1) * 64;
		while (word < last && !(m->pages[word / 4096] >> word / 64 % 64))
			word = (word / 4096 + 1) * 4096;
	}
	return last;
}

uint64_t heap_marks_next(const struct heap_marks *m, uint64_t address)
{
	const uint64_t last = (m->end - m->start) / GRANULE, last_word = (last + 63) / 64;
	uint64_t bit = (address - m->start + GRANULE - 1) / GRANULE;

	while (bit < last) {
		const uint64_t rest = m->begins[bit / 64] >> bit % 64;
		if (rest) {
			bit += (uint64_t)__builtin_ctzll(rest);
			return bit < last ? m->start + bit * GRANULE : m->end;
		}
		bit = next_word(m, bit / 64 + 1, last_word) * 64;
	}
	return m->end;
}

/* The highest bit that is set below `end`, in the word of the one before it; false: none. */
static bool last_below(const uint64_t *bits, uint64_t end, uint64_t *bit)
{
	const uint64_t below = end ? bits[(end - 1) / 64] << (63 - (end - 1) % 64) : 0;

	if (below)
		*bit = end - 1 - (uint64_t)__builtin_clzll(below);
	return below != 0;
}

/* The last word below `end` that may have a bit set; false: none. */
static bool last_word(const struct heap_marks *m, uint64_t end, uint64_t *word)
{
	uint64_t page;

	while (end && !last_below(m->words, end, word)) {
		end = (end - 1) / 64;
		while (end && !last_below(m->pages, end, &page))
			end = (end - 1) / 64 * 64;
		if (!end)
			return false;
		end = (page + 1) * 64;
	}
	return end != 0;
}

uint64_t heap_marks_previous(const struct heap_marks *m, uint64_t address)
{
	const uint64_t last = (address - m->start) / GRANULE;
	uint64_t bit, word;

	if (last_below(m->begins, last, &bit))
		return m->start + bit * GRANULE;
	for (uint64_t end = last ? (last - 1) / 64 : 0; last_word(m, end, &word); end = word)
		if (last_below(m->begins, (word + 1) * 64, &bit))
			return m->start + bit * GRANULE;
	return 0;
}
