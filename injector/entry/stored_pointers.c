/* SPDX-License-Identifier: MIT */
#include "entry/stored_pointers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/now.h"
#include "process/page_scan.h"

#define CHUNK_BYTES (256u << 10)
#define WANTED_MAX 256u

struct search {
	const struct target_memory *memory;
	const struct maps *maps;
	const struct modules *modules;
	const struct libc *libc;
	const struct got_plan *plan;
	uint64_t wanted[WANTED_MAX]; /* sorted */
	size_t wanted_count;
	uint64_t *buffer;
	uint64_t cpu_end_ns;
	uint64_t bytes;
	struct stored_pointer found;
};

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void collect(struct search *q)
{
	for (size_t i = 0; i < q->plan->route_count && q->wanted_count < WANTED_MAX; i++) {
		const struct entry_route *r = &q->plan->routes[i];
		if (r->hooked && hook_group(r->hook) == GROUP_MALLOC)
			q->wanted[q->wanted_count++] = r->original;
	}
	qsort(q->wanted, q->wanted_count, sizeof *q->wanted, by_address);
}

static bool is_over(const struct search *q)
{
	return q->found.function || q->bytes > STORED_BYTES || now_ns(CLOCK_THREAD_CPUTIME_ID) >= q->cpu_end_ns;
}

/* A word that will be patched, or one of the modules whose pointers are known. */
static bool is_known(const struct search *q, uint64_t at)
{
	const struct elf_module *m = modules_find(q->modules, at, false);

	if (m && (m == q->libc->module || m == modules_loader(q->modules)))
		return true;
	for (size_t i = 0; i < q->plan->entry_count; i++)
		if (q->plan->entries[i].address == at)
			return true;
	for (size_t i = 0; i < q->plan->refusal_count; i++)
		if (q->plan->refusals[i].address == at)
			return true;
	return false;
}

static void search_words(struct search *q, uint64_t start, size_t count)
{
	const uint64_t lowest = q->wanted[0], span = q->wanted[q->wanted_count - 1] - lowest;

	for (size_t i = 0; i < count; i++) {
		uint64_t word = q->buffer[i], at = start + i * sizeof word;
		if (word - lowest > span || !bsearch(&word, q->wanted, q->wanted_count, sizeof word, by_address) ||
		    is_known(q, at))
			continue;
		q->found = (struct stored_pointer){ .at = at, .function = word };
		return;
	}
}

static void search_run(struct search *q, const struct page_run *run)
{
	struct err ignored;

	for (uint64_t at = run->start; at < run->end && !is_over(q); at += CHUNK_BYTES) {
		uint64_t bytes = run->end - at < CHUNK_BYTES ? run->end - at : CHUNK_BYTES;
		q->bytes += bytes;
		if (target_read(q->memory, at, q->buffer, bytes, &ignored) == 0)
			search_words(q, at, bytes / sizeof *q->buffer);
	}
}

static bool is_ours(const struct mapping *m)
{
	return strstr(m->path, "/memfd:memattach") != NULL;
}

/* Data of trampolines and of a payload that had to stay come after their code. */
static bool is_our_data(const struct search *q, const struct mapping *m)
{
	return is_ours(m) || (!m->path[0] && m > q->maps->list && m[-1].end == m->start && is_ours(m - 1));
}

/* One that the C library made has a guard below it. */
static bool may_be_stack(const struct search *q, const struct mapping *m)
{
	const struct mapping *below = m > q->maps->list ? m - 1 : NULL;

	return !strncmp(m->path, "[stack", 6) || (!m->path[0] && below && below->end == m->start && below->prot == 0);
}

static bool is_searched(const struct search *q, const struct mapping *m)
{
	return !m->shared && (m->prot & PROT_READ) && !(m->prot & PROT_EXEC) && strncmp(m->path, "[v", 2) &&
	       !is_our_data(q, m) && !may_be_stack(q, m);
}

static void search_mapping(struct search *q, struct page_scan *pages, const struct mapping *m)
{
	for (uint64_t at = m->start; at < m->end && !is_over(q);) {
		if (!page_scan_step(pages, &at, m->end))
			return;
		for (size_t i = 0; i < pages->count; i++)
			if (!pages->runs[i].file && !pages->runs[i].swapped)
				search_run(q, &pages->runs[i]);
	}
}

int stored_pointers_find(const struct target *t, const struct target_memory *memory, const struct maps *maps,
                         const struct modules *modules, const struct libc *libc, const struct got_plan *plan,
                         struct stored_pointer *found, struct err *e)
{
	AUTO_FREE uint64_t *buffer = malloc(CHUNK_BYTES);
	struct search q = {
		.memory = memory, .maps = maps, .modules = modules, .libc = libc, .plan = plan, .buffer = buffer
	};
	struct page_scan pages;

	*found = q.found;
	collect(&q);
	if (!buffer)
		return err_set(e, ENOMEM, "out of memory");
	if (!q.wanted_count)
		return 0;
	int rc = page_scan_open(&pages, t, e);
	if (rc < 0)
		return rc;
	page_scan_prepare(&pages, t, maps);
	q.cpu_end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + STORED_CPU_NS;
	for (size_t i = 0; i < maps->count && !is_over(&q); i++)
		if (is_searched(&q, &maps->list[i]))
			search_mapping(&q, &pages, &maps->list[i]);
	page_scan_close(&pages);
	*found = q.found;
	return 0;
}
