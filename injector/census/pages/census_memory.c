/* SPDX-License-Identifier: MIT */
#include "census/pages/census_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/now.h"

#define PIECES 512u
#define AHEAD 8u                     /* pages */
#define PROGRESS_EVERY (16ull << 20) /* bytes */

int census_memory_open(struct census_memory *m, const struct target *t, const struct maps *maps,
                       const struct target_memory *memory, const struct resident_pages *pages, uint64_t work,
                       struct err *e)
{
	*m = (struct census_memory){ .pages = pages };
	mapped_files_open(&m->files, t, maps);
	m->cached = calloc(CENSUS_CACHE_PAGES, sizeof *m->cached);
	m->cache = malloc(CENSUS_CACHE_PAGES * sizeof *m->cache);
	if (!m->cached || !m->cache) {
		census_memory_close(m);
		return err_set(e, ENOMEM, "no memory for pages that are read");
	}
	budget_start(&m->budget, UINT64_MAX, work);
	m->memory = target_memory_charged(memory, &m->budget);
	return 0;
}

void census_memory_close(struct census_memory *m)
{
	mapped_files_close(&m->files);
	free(m->cached);
	free(m->cache);
	m->cached = NULL;
	m->cache = NULL;
}

bool census_memory_in_time(struct census_memory *m)
{
	m->time_is_up |= m->until_ns && now_ns(CLOCK_THREAD_CPUTIME_ID) >= m->until_ns;
	return !m->time_is_up;
}

void census_memory_refresh(struct census_memory *m)
{
	memset(m->cached, 0, CENSUS_CACHE_PAGES * sizeof *m->cached);
}

/* Of a page that is not there: neither in memory nor in swap. */
static bool read_file(struct census_memory *m, uint64_t page, void *buffer)
{
	const size_t i = resident_pages_from(m->pages, page);

	return (i == m->pages->count || m->pages->runs[i].start > page) &&
	       budget_work(&m->budget, CENSUS_PAGE, ERR_IGNORED) == 0 &&
	       mapped_files_read(&m->files, page, buffer, CENSUS_PAGE);
}

/* Reads a page, and some behind it where the one in front of it was read: who goes on saves calls. */
static bool read_pages(struct census_memory *m, uint64_t page, size_t slot)
{
	const bool goes_on = !m->scattered && slot && m->cached[slot - 1] == page - CENSUS_PAGE + 1 &&
	                     slot + AHEAD <= CENSUS_CACHE_PAGES;

	if (goes_on && resident_pages_hold(m->pages, page, page + AHEAD * CENSUS_PAGE) &&
	    target_read(&m->memory, page, m->cache[slot], AHEAD * CENSUS_PAGE, ERR_IGNORED) == 0) {
		for (size_t i = 1; i < AHEAD; i++)
			m->cached[slot + i] = page + i * CENSUS_PAGE + 1;
		return true;
	}
	return target_read(&m->memory, page, m->cache[slot], CENSUS_PAGE, ERR_IGNORED) == 0;
}

/* The copy of a page, or NULL. */
static const uint8_t *page_at(struct census_memory *m, uint64_t page)
{
	const size_t slot = page / CENSUS_PAGE % CENSUS_CACHE_PAGES;

	if (m->cached[slot] == page + 1)
		return m->cache[slot];
	m->cached[slot] = 0;
	if (resident_pages_hold(m->pages, page, page + CENSUS_PAGE) ? !read_pages(m, page, slot)
	                                                            : !read_file(m, page, m->cache[slot]))
		return NULL;
	m->cached[slot] = page + 1;
	return m->cache[slot];
}

bool census_memory_read(struct census_memory *m, uint64_t address, void *buffer, size_t bytes)
{
	if (address + bytes < address)
		return false;
	for (size_t done = 0; done < bytes;) {
		const uint64_t at = address + done, offset = at % CENSUS_PAGE;
		const uint8_t *page = page_at(m, at - offset);
		size_t n = CENSUS_PAGE - offset < bytes - done ? CENSUS_PAGE - offset : bytes - done;
		if (!page)
			return false;
		memcpy((char *)buffer + done, page + offset, n);
		done += n;
	}
	return true;
}

bool census_memory_read_text(struct census_memory *m, uint64_t address, char *text, size_t size)
{
	const size_t first = CENSUS_PAGE - address % CENSUS_PAGE;

	memset(text, 0, size);
	if (!census_memory_read(m, address, text, first < size - 1 ? first : size - 1))
		return false;
	if (first < size - 1 && !memchr(text, '\0', first) &&
	    !census_memory_read(m, address + first, text + first, size - 1 - first))
		text[first] = '\0';
	return true;
}

uint64_t census_memory_word(struct census_memory *m, uint64_t address)
{
	uint64_t word;

	return census_memory_read(m, address, &word, sizeof word) ? word : 0;
}

/* All, or each by itself where one has gone. */
static bool read_pieces(struct census_memory *m, const struct target_piece *pieces, size_t count)
{
	int rc = target_read_batch(&m->memory, pieces, count, ERR_IGNORED);
	for (size_t i = 0; rc < 0 && rc != -E2BIG && i < count; i++)
		if (target_read(&m->memory, pieces[i].address, pieces[i].buffer, pieces[i].bytes, ERR_IGNORED) < 0)
			memset(pieces[i].buffer, 0, pieces[i].bytes);
	return rc != -E2BIG && budget_check(&m->budget, ERR_IGNORED) == 0;
}

static void show_progress(struct census_memory *m, size_t bytes)
{
	const uint64_t before = m->ranges_bytes / PROGRESS_EVERY;

	m->ranges_bytes += bytes;
	if (m->progress && m->ranges_bytes / PROGRESS_EVERY != before)
		m->progress(m->ranges_bytes);
}

bool census_memory_read_range(struct census_memory *m, uint64_t start, void *buffer, size_t bytes)
{
	struct target_piece pieces[PIECES];
	const uint64_t end = start + bytes;
	size_t count = 0;
	bool in_budget = true;

	memset(buffer, 0, bytes);
	show_progress(m, bytes);
	for (size_t i = resident_pages_from(m->pages, start); i < m->pages->count && m->pages->runs[i].start < end;
	     i++) {
		const struct page_run *run = &m->pages->runs[i];
		const uint64_t from = run->start > start ? run->start : start, to = run->end < end ? run->end : end;
		if (run->swapped)
			continue;
		pieces[count++] = (struct target_piece){ from, to - from, (char *)buffer + (from - start) };
		if (count == PIECES) {
			in_budget = read_pieces(m, pieces, count);
			count = 0;
		}
	}
	in_budget = (count == 0 || read_pieces(m, pieces, count)) && in_budget;
	if (m->sums && in_budget)
		page_sums_note(m->sums, start, buffer, bytes);
	return in_budget;
}
