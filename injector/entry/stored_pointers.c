/* SPDX-License-Identifier: MIT */
#include "entry/stored_pointers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/now.h"
#include "search/memory_search.h"
#include "base/order.h"

#define WANTED_MAX 256u

struct search {
	const struct stored_pointers_input *in;
	uint64_t wanted[WANTED_MAX]; /* sorted */
	size_t wanted_count;
	uint64_t cpu_end_ns;
	uint64_t bytes;
	struct stored_pointer found;
};

ORDER_NUMBERS(by_address, uint64_t);

static void collect(struct search *q)
{
	for (size_t i = 0; i < q->in->plan->route_count && q->wanted_count < WANTED_MAX; i++) {
		const struct entry_route *r = &q->in->plan->routes[i];
		if (r->hooked && listed_hook_group(r->hook) == GROUP_MALLOC)
			q->wanted[q->wanted_count++] = r->original;
	}
	qsort(q->wanted, q->wanted_count, sizeof *q->wanted, by_address);
}

static bool is_over(void *context)
{
	const struct search *q = context;

	return q->found.function || q->bytes > STORED_BYTES || now_ns(CLOCK_THREAD_CPUTIME_ID) >= q->cpu_end_ns;
}

/* A word that will be patched, or one of the modules whose pointers are known. */
static bool is_known(const struct search *q, uint64_t at)
{
	const struct elf_module *m = modules_find(q->in->modules, at, false);

	if (m && (m == q->in->libc->module || m == modules_loader(q->in->modules)))
		return true;
	for (size_t i = 0; i < q->in->plan->entry_count; i++)
		if (q->in->plan->entries[i].address == at)
			return true;
	for (size_t i = 0; i < q->in->plan->refusal_count; i++)
		if (q->in->plan->refusals[i].address == at)
			return true;
	return false;
}

static bool search_words(void *context, const uint64_t *words, uint64_t start, size_t count)
{
	struct search *q = context;
	const uint64_t lowest = q->wanted[0], span = q->wanted[q->wanted_count - 1] - lowest;

	q->bytes += count * sizeof *words;
	for (size_t i = 0; i < count; i++) {
		uint64_t word = words[i], at = start + i * sizeof word;
		if (word - lowest > span || !bsearch(&word, q->wanted, q->wanted_count, sizeof word, by_address) ||
		    is_known(q, at))
			continue;
		q->found = (struct stored_pointer){ .at = at, .function = word };
		return true;
	}
	return false;
}

static enum memory_run choose_run(void *unused, const struct page_run *run)
{
	(void)unused;
	return run->file || run->swapped ? MEMORY_RUN_PASSED : MEMORY_RUN_READ;
}

static bool is_ours(const struct mapping *m)
{
	return strstr(m->path, "/memfd:memattach") != NULL;
}

/* Data of trampolines and of a payload that had to stay come after their code. */
static bool is_our_data(const struct search *q, const struct mapping *m)
{
	return is_ours(m) || (!m->path[0] && m > q->in->maps->list && m[-1].end == m->start && is_ours(m - 1));
}

/* One that the C library made has a guard below it. */
static bool may_be_stack(const struct search *q, const struct mapping *m)
{
	const struct mapping *below = m > q->in->maps->list ? m - 1 : NULL;

	return !strncmp(m->path, "[stack", 6) || (!m->path[0] && below && below->end == m->start && below->prot == 0);
}

static bool is_searched(void *context, const struct mapping *m)
{
	const struct search *q = context;

	return !m->shared && (m->prot & PROT_READ) && !(m->prot & PROT_EXEC) && strncmp(m->path, "[v", 2) &&
	       !is_our_data(q, m) && !may_be_stack(q, m);
}

int stored_pointers_find(struct stored_pointer *found, const struct stored_pointers_input *in, struct err *e)
{
	struct search q = { .in = in };
	struct page_scan pages;

	*found = q.found;
	collect(&q);
	if (!q.wanted_count)
		return 0;
	int rc = page_scan_open(&pages, in->target, e);
	if (rc < 0)
		return rc;
	q.cpu_end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + STORED_CPU_NS;
	const struct memory_search search = { in->memory, &pages, &q, is_over, is_searched, choose_run, search_words };
	rc = memory_search(&search, in->target, in->maps, e);
	page_scan_close(&pages);
	*found = q.found;
	return rc;
}
