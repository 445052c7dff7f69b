/* SPDX-License-Identifier: MIT */
#include "census/census.h"

#include <unistd.h>

#include "base/now.h"
#include "census/census_lost.h"
#include "census/pages/region_count.h"
#include "process/live_thread.h"

/* Bytes that may be read: each page that is there some times, and what lists are long. */
#define READ_TIMES 8u
#define READ_LEAST (1ull << 30)
/* Up to here the kernel is asked to count pages, which takes it some 10 ms a GiB. */
#define EXACT_MOST (1ull << 30)

static int scan_mapping(struct resident_pages *pages, struct page_scan *scan, const struct mapping *m, struct err *e)
{
	int rc = 0;

	for (uint64_t at = m->start; at < m->end && rc == 0;) {
		if (!page_scan_step(scan, &at, m->end))
			break; /* unmapped meanwhile */
		for (size_t k = 0; k < scan->count && rc == 0; k++)
			rc = resident_pages_add(pages, &scan->runs[k], e);
	}
	return rc;
}

static int scan_pages(const struct target *t, const struct maps *maps, struct resident_pages *pages, struct err *e)
{
	struct page_scan scan;
	struct region r;

	int rc = page_scan_open(&scan, t, e);
	if (rc < 0)
		return rc;
	page_scan_prepare(&scan, t, maps);
	for (size_t i = 0; i < maps->count && rc == 0; i++)
		if (region_of_mapping(&r, &maps->list[i]))
			rc = scan_mapping(pages, &scan, &maps->list[i], e);
	page_scan_close(&scan);
	return rc;
}

int census_scan(const struct target *t, struct maps *maps, struct resident_pages *pages, struct err *e)
{
	int rc = live_thread_maps(t, maps, e);

	return rc == 0 ? scan_pages(t, maps, pages, e) : rc;
}

static bool is_stack(const void *context, const struct mapping *m)
{
	return stack_owners_name(context, m) != NULL;
}

static int take_heap(struct census *c, const struct census_wish *wish, struct err *e)
{
	int writable = -1;

	int rc = live_thread_memory(c->target, &c->process, &writable, e);
	if (rc < 0)
		return rc;
	close(writable);
	c->has_process = true;
	rc = census_memory_open(&c->memory, c->target, &c->maps, &c->process, &c->pages,
	                        READ_LEAST + READ_TIMES * c->rss_after, e);
	c->memory.progress = wish->reading;
	if (rc == 0 && wish->lost) {
		rc = page_sums_open(&c->sums, &c->pages, e);
		c->memory.sums = &c->sums;
	}
	const struct census_heap_source source = { c->target, &c->maps, &c->memory, is_stack, &c->stacks };
	rc = rc ?: census_heap_take(&c->heap, &source, e);
	c->memory.sums = NULL; /* the words that types are known by are not followed */
	if (!wish->blocks)
		rc = rc ?: block_types_take(&c->types, &c->heap, &c->memory, NULL, NULL, e);
	c->memory.progress = NULL;
	if (rc == 0 && (wish->lost || wish->holders || wish->blocks))
		rc = census_lost_look(c, wish, e);
	return rc;
}

/* What a sum has less than the least that the kernel said, or more than the most. */
static uint64_t gap(const struct census *c, uint64_t sum)
{
	const uint64_t said[] = { c->rss_before, c->rss_after, c->rss_exact ? c->rss_exact : c->rss_after };
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
		low = said[i] < low ? said[i] : low;
		high = said[i] > high ? said[i] : high;
	}
	return sum < low ? low - sum : sum > high ? sum - high : 0;
}

static bool adds_up(uint64_t missing, uint64_t sum)
{
	return missing * 200 <= sum;
}

static int look_at_pages(struct census *c, struct err *e)
{
	struct memory_use use = { 0 };

	int rc = target_memory_use(c->target, &use, e);
	c->rss_before = use.resident;
	rc = rc ?: live_thread_maps(c->target, &c->maps, e);
	rc = rc ?: stack_owners_find(&c->stacks, c->target, &c->maps, e);
	rc = rc ?: scan_pages(c->target, &c->maps, &c->pages, e);
	rc = rc ?: target_memory_use(c->target, &use, e);
	c->rss_after = use.resident;
	const uint64_t sum = resident_pages_sum(&c->pages, 0, UINT64_MAX);
	if (rc == 0 && sum < EXACT_MOST && !adds_up(gap(c, sum), sum))
		c->rss_exact = target_resident_exact(c->target);
	c->when_ns = now_ns(CLOCK_MONOTONIC);
	return rc;
}

static int count_regions(struct census *c, struct err *e)
{
	struct region_count count = { .maps = &c->maps,
		                      .pages = &c->pages,
		                      .stacks = &c->stacks,
		                      .extents = &c->heap.extents,
		                      .table = &c->regions };

	int rc = region_count(&count, e);
	c->resident = count.resident;
	c->swapped = count.swapped;
	c->huge = count.huge;
	return rc;
}

static int take_all(struct census *c, const struct census_wish *wish, struct err *e)
{
	int rc = look_at_pages(c, e);

	rc = rc ?: take_heap(c, wish, e);
	return rc == 0 ? count_regions(c, e) : rc;
}

int census_take(struct census *c, const struct target *target, const struct census_wish *wish, struct err *e)
{
	*c = (struct census){ .target = target, .lost.wanted = wish->lost };
	int rc = take_all(c, wish, e);
	if (rc == -EACCES || rc == -EPERM)
		target_explain_permission(target, e);
	return rc;
}

void census_keep_figures(struct census *c)
{
	if (c->memory.cache)
		census_memory_close(&c->memory);
	resident_pages_free(&c->pages);
	extents_free(&c->heap.extents);
	glibc_heap_keep_figures(&c->heap.glibc);
}

void census_free(struct census *c)
{
	census_lost_free(c);
	census_keep_figures(c);
	if (c->has_process)
		target_memory_close(&c->process);
	region_table_free(&c->regions);
	census_heap_free(&c->heap);
	block_types_free(&c->types);
	stack_owners_free(&c->stacks);
	maps_free(&c->maps);
	*c = (struct census){ 0 };
}

uint64_t census_gap(const struct census *c)
{
	return gap(c, c->resident);
}

bool census_adds_up(const struct census *c)
{
	return adds_up(census_gap(c), c->resident);
}
