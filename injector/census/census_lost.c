/* SPDX-License-Identifier: MIT */
#include "census/census_lost.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/now.h"
#include "census/blocks/block_holders.h"
#include "census/reach/apart_words.h"
#include "census/reach/reach_roots.h"
#include "host/clocks.h"
#include "process/task.h"

#define HOLDERS_SHOWN 40u
#define TRIED_BYTES (32ull << 20)
#define STOP_NS 2000000ull /* for the threads */
#define FOLLOW_NS 60000000000ull
#define FOLLOW_GIB_NS 6000000000ull /* more for each GiB that is there: of small blocks, two are needed */

void census_lost_is_unknown(struct census *c, const char *format, ...)
{
	va_list arguments;

	c->lost.known = false;
	if (c->lost.why[0])
		return;
	va_start(arguments, format);
	vsnprintf(c->lost.why, sizeof c->lost.why, format, arguments);
	va_end(arguments);
}

void census_lost_has_requests(struct census *c)
{
	census_lost_is_unknown(c, "it makes requests by io_uring or aio, which hold pointers in the kernel");
}

/* Requests that are under way hold pointers in the kernel, which nobody tells. */
static bool has_requests(const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		if (strstr(maps->list[i].path, "[io_uring]") || !strncmp(maps->list[i].path, "/[aio]", 6))
			return true;
	return false;
}

static bool has_swapped(const struct resident_pages *pages)
{
	for (size_t i = 0; i < pages->count; i++)
		if (pages->runs[i].swapped)
			return true;
	return false;
}

/* What is known before: where pointers may be that cannot be read, or blocks that were not found. */
static void check_heap(struct census *c)
{
	const struct glibc_heap *h = &c->heap.glibc;

	if (!h->glibc.layout)
		census_lost_is_unknown(c, "its heap is not one of glibc");
	else if (h->lists_unknown || h->glibc.or_later)
		census_lost_is_unknown(c, "the release of its glibc is not known");
	else if (has_swapped(&c->pages))
		census_lost_is_unknown(c, "a part of it is in swap, and stays there");
	else if (h->over || h->foreign)
		census_lost_is_unknown(c, "%s",
		                       h->over ? "its heap was not walked to its end"
		                               : "others than malloc have parts of brk's heap");
	else if (reach_roots_have_huge_pages(&c->maps))
		census_lost_is_unknown(c, "it has huge pages of hugetlbfs, which are not read");
	else if (reach_roots_unseen_shared(&c->maps, &c->pages, task_alive(c->target->pid)))
		census_lost_is_unknown(c, "it shares memory that it has not touched, which is not read");
	else if (has_requests(&c->maps))
		census_lost_has_requests(c);
}

/* What changed too often to be walked, as the end of a heap does that grows, is walked when it stands still. */
static void forget_gaps(struct census *c)
{
	const struct glibc_heap *h = &c->heap.glibc;

	for (size_t i = 0; i < h->gap_count; i++)
		page_sums_forget(&c->sums, h->gaps[i].start, h->gaps[i].end);
}

/* A page of other memory may begin as such a block does. Some may also have come since they were counted. */
static bool has_more_mapped_blocks(const struct census_heap *h)
{
	const struct glibc *g = &h->glibc.glibc;

	return !g->counts_mapped || h->mapped_count > g->mapped_count || h->mapped_bytes > g->mapped_bytes;
}

/* Of CPU time, to follow pointers. */
static uint64_t follow_ns(const struct census *c, const struct census_wish *wish)
{
	return wish->budget_ns ? wish->budget_ns : FOLLOW_NS + (c->rss_after >> 30) * FOLLOW_GIB_NS;
}

int census_lost_look(struct census *c, const struct census_wish *wish, struct err *e)
{
	struct err why;

	check_heap(c);
	if (c->lost.why[0] && !((wish->holders || wish->blocks) && c->heap.glibc.glibc.layout))
		return 0;
	int rc = reach_open(&c->reach, &c->heap, &c->memory, &c->maps, &c->sums, &why);
	if (rc < 0 && rc != -E2BIG) {
		*e = why;
		return rc;
	}
	if (rc < 0) {
		census_lost_is_unknown(c, "%s", why.text);
		return 0;
	}
	c->reach.give_up_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) + follow_ns(c, wish);
	c->reach.progress = wish->progress;
	c->reach.sums = wish->lost ? &c->sums : NULL;
	c->lost.holders = wish->lost && wish->holders && !c->lost.why[0];
	if (wish->lost && has_more_mapped_blocks(&c->heap))
		reach_mapped_blocks(&c->reach);
	reach_look(&c->reach, maps_find(&c->maps, c->heap.glibc.glibc.main_arena), !wish->lost || c->lost.why[0]);
	if (c->reach.over)
		census_lost_is_unknown(c, "to follow all pointers takes longer than --budget");
	else if (wish->blocks)
		rc = block_holders_find(wish->blocks, &c->reach, &c->stacks, &c->process, e);
	else if (wish->holders && !c->lost.holders)
		rc = holders_take(&c->holders, &c->reach, &c->stacks, &c->process, HOLDERS_SHOWN, e);
	if (rc == 0 && wish->lost) {
		reach_prepare(&c->reach);
		forget_gaps(c);
	}
	return rc;
}

/* As census_lost_settle asks for mappings and pages, which takes long where there are many. */
static uint64_t scan_ns(const struct census *c)
{
	const uint64_t before = clock_monotonic_ns();
	struct resident_pages pages = { 0 };
	struct maps maps = { 0 };

	(void)!census_scan(c->target, &maps, &pages, ERR_IGNORED);
	resident_pages_free(&pages);
	maps_free(&maps);
	return clock_monotonic_ns() - before;
}

uint64_t census_lost_expected_ns(struct census *c)
{
	const uint64_t scan = scan_ns(c), before = clock_monotonic_ns(), bytes = reach_bytes(&c->reach);
	uint64_t tried = reach_try_reading(&c->reach, TRIED_BYTES);
	const uint64_t ns = clock_monotonic_ns() - before;

	return STOP_NS + scan + (tried ? (uint64_t)((double)bytes / (double)tried * (double)ns) : 0);
}

static int scan(struct census *c, const struct target *t, uint64_t until_ns, struct err *e)
{
	struct census_lost *lost = &c->lost;

	maps_free(&lost->maps);
	resident_pages_free(&lost->pages);
	c->reach.give_up_ns = until_ns;
	c->reach.give_up_cpu_ns = UINT64_MAX;
	return census_scan(t, &lost->maps, &lost->pages, e);
}

int census_lost_settle(struct census *c, const struct reach_stop *stop, uint64_t until_ns, struct err *e)
{
	struct census_lost *lost = &c->lost;

	int rc = scan(c, c->target, until_ns, e);
	rc = rc ?: reach_settle(&c->reach, &lost->maps, &lost->pages, stop, e);
	lost->known = rc == 0;
	return rc;
}

int census_lost_settle_in_clone(struct census *c, const struct reach_stop *stop, const struct census_clone *clone,
                                struct err *e)
{
	const struct target_memory process = c->memory.memory;
	struct census_lost *lost = &c->lost;

	int rc = scan(c, clone->target, UINT64_MAX, e);
	rc = rc ?: apart_words_check(clone->maps, &lost->maps, clone->prospect, e);
	if (rc == 0) {
		c->reach.goes_on = clone->goes_on;
		c->reach.goes_on_context = clone->context;
		c->memory.memory = target_memory_charged(clone->memory, &c->memory.budget);
		rc = reach_settle(&c->reach, &lost->maps, &lost->pages, stop, e);
		c->memory.memory = process;
		c->reach.goes_on = NULL;
		census_memory_refresh(&c->memory);
	}
	lost->known = lost->cloned = rc == 0;
	return rc;
}

static bool is_lost(const void *context, uint64_t block)
{
	return reach_is_lost(context, block);
}

/* Where no moment was had, stacks are looked at while it runs. */
static int take_holders(struct census *c, struct err *e)
{
	struct reach *r = &c->reach;

	if (!c->lost.known) {
		r->over = false;
		r->give_up_ns = UINT64_MAX;
		r->give_up_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) + FOLLOW_NS;
		r->sums = NULL;
		reach_look_at_stacks(r);
	}
	return r->over ? 0 : holders_take(&c->holders, r, &c->stacks, &c->process, HOLDERS_SHOWN, e);
}

int census_lost_count(struct census *c, struct err *e)
{
	int rc = c->lost.holders ? take_holders(c, e) : 0;

	if (rc < 0 || !c->lost.known)
		return rc;
	if (has_swapped(&c->lost.pages))
		census_lost_is_unknown(c, "a part of it has gone to swap");
	c->lost.figures = reach_count(&c->reach);
	return c->lost.known ? block_types_take(&c->lost.types, &c->heap, &c->memory, is_lost, &c->reach, e) : 0;
}

void census_lost_free(struct census *c)
{
	holders_free(&c->holders);
	reach_close(&c->reach);
	page_sums_close(&c->sums);
	block_types_free(&c->lost.types);
	resident_pages_free(&c->lost.pages);
	maps_free(&c->lost.maps);
}
