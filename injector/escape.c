/* SPDX-License-Identifier: MIT */
#include "escape.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cleanup.h"
#include "control.h"

#define PAGE_BYTES 4096u
#define CHUNK_PAGES 256u
#define CHUNK_BYTES (CHUNK_PAGES * PAGE_BYTES)
#define PASSES 2

/* An entry of /proc/PID/pagemap (the kernel's admin-guide/mm/pagemap.rst). */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)

struct search {
	const struct escape *x;
	const struct target_memory *memory;
	int pagemap;
	uint64_t *buffer; /* CHUNK_BYTES */
};

static uint64_t rotate_right(uint64_t value, unsigned bits)
{
	return value >> bits | value << (64 - bits);
}

/*
 * A program can only have copied the address of a gate; a saved context, that of one of its two instructions. Other words
 * that happen to lie in the page are pointers to what was mapped there before.
 */
static bool is_gate(const struct escape *x, uint64_t word)
{
	return word >= x->start && word < x->end &&
	       ((word - x->start) % GATE_CODE_BYTES == 0 || (word - x->start) % GATE_CODE_BYTES == GATE_JUMP_OFFSET);
}

static bool is_hit(const struct escape *x, uint64_t word)
{
	return is_gate(x, word) || (x->has_guard && is_gate(x, rotate_right(word, 17) ^ x->guard));
}

/* Where the mapping begins to be alive: a stack below its stack pointer is not, but for the page that the pointer is in. */
static uint64_t alive_from(const struct escape *x, const struct mapping *m)
{
	uint64_t lowest = m->end;

	for (size_t i = 0; i < x->stack_count; i++)
		if (x->stacks[i] >= m->start && x->stacks[i] < lowest)
			lowest = x->stacks[i];
	return lowest < m->end ? lowest & ~(uint64_t)(PAGE_BYTES - 1) : m->start;
}

/* A word that is below the stack pointer in the stack pointer's own page. */
static bool is_dead(const struct escape *x, uint64_t address)
{
	for (size_t i = 0; i < x->stack_count; i++)
		if (address < x->stacks[i] && address >= (x->stacks[i] & ~(uint64_t)(PAGE_BYTES - 1)))
			return true;
	return false;
}

static uint64_t search_pages(const struct search *q, uint64_t start, uint64_t bytes)
{
	struct err ignored;

	if (target_read(q->memory, start, q->buffer, bytes, &ignored) < 0)
		return 0; /* unmapped meanwhile, or beyond the end of its file */
	for (size_t i = 0; i < bytes / sizeof *q->buffer; i++) {
		uint64_t where = start + i * sizeof *q->buffer;
		if (is_hit(q->x, q->buffer[i]) && (where < q->x->skip_start || where >= q->x->skip_end) &&
		    !is_dead(q->x, where))
			return where;
	}
	return 0;
}

/* Pages that are not there hold nothing; to read them would make them resident. */
static uint64_t search_mapping(const struct search *q, const struct mapping *m)
{
	uint64_t entries[CHUNK_PAGES];

	for (uint64_t at = alive_from(q->x, m); at < m->end; at += CHUNK_BYTES) {
		size_t pages = (m->end - at < CHUNK_BYTES ? m->end - at : CHUNK_BYTES) / PAGE_BYTES;
		ssize_t n = pread(q->pagemap, entries, pages * sizeof *entries, (off_t)(at / PAGE_BYTES * sizeof *entries));
		if (n != (ssize_t)(pages * sizeof *entries))
			return 0;
		for (size_t i = 0; i < pages;) {
			size_t first = i;
			while (i < pages && (entries[i] & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED)))
				i++;
			uint64_t found = i > first ? search_pages(q, at + first * PAGE_BYTES, (i - first) * PAGE_BYTES) : 0;
			if (found)
				return found;
			i += i == first;
		}
	}
	return 0;
}

static bool worth_searching(const struct mapping *m)
{
	bool special = m->path[0] == '[' && m->path[1] == 'v'; /* [vvar] and kin */

	return (m->prot & PROT_WRITE) && (m->prot & PROT_READ) && !special;
}

int escape_search(const struct escape *x, const struct target *t, const struct target_memory *memory, uint64_t *found,
		  struct err *e)
{
	AUTO_FREE uint64_t *buffer = malloc(CHUNK_BYTES);
	struct search q = { .x = x, .memory = memory, .buffer = buffer };
	char path[64];

	if (!buffer)
		return err_set(e, ENOMEM, "out of memory");
	*found = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/pagemap", t->pid, t->tid);
	AUTO_CLOSE int pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return err_sys(e, "cannot open %s", path);
	q.pagemap = pagemap;
	snprintf(path, sizeof path, "/proc/%d/task/%d/maps", t->pid, t->tid);
	for (int pass = 0; pass < PASSES && !*found; pass++) {
		struct maps maps;
		int rc = maps_read(&maps, path, e);
		if (rc < 0)
			return rc;
		for (size_t i = 0; i < maps.count && !*found; i++)
			if (worth_searching(&maps.list[i]))
				*found = search_mapping(&q, &maps.list[i]);
		maps_free(&maps);
	}
	return 0;
}
