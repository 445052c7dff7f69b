/* SPDX-License-Identifier: MIT */
#include "census/memory_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/now.h"
#include "census/census_summary.h"
#include "census/pages/region_count.h"
#include "host/clocks.h"
#include "process/live_thread.h"

#define READ_BYTES (64ull << 20) /* of its memory and its files, at most, and a 64th of what is there */
#define PAGES_GIB_NS 10000000ull
#define THREADS_MAX 1000u /* of which the stacks are looked for: 30 µs each */

struct looking {
	const struct target *target;
	struct maps maps;
	struct stack_owners stacks;
	struct quick_scan scan;
	struct target_memory process;
	bool has_process;
	struct census_memory memory;
	struct census_heap heap;
	struct region_table regions;
	struct memory_use use;
	uint64_t until_ns;
	struct census_sketch sketch;
	struct memory_look *look;
};

static bool is_stack(const void *context, const struct mapping *m)
{
	return stack_owners_name(context, m) != NULL;
}

static int open_memory(struct looking *l, struct err *e)
{
	int writable = -1;

	int rc = live_thread_memory(l->target, &l->process, &writable, e);
	if (rc < 0)
		return rc;
	close(writable);
	l->has_process = true;
	rc = census_memory_open(&l->memory, l->target, &l->maps, &l->process, &l->scan.pages,
	                        READ_BYTES + l->use.resident / 64, e);
	l->memory.until_ns = l->until_ns;
	return rc;
}

static int look_at_heap(struct looking *l, struct err *e)
{
	const struct census_heap_source source = { l->target, &l->maps, &l->memory, is_stack, &l->stacks };

	int rc = open_memory(l, e);
	rc = rc ?: census_heap_sketch(&l->heap, &source, &l->sketch, e);
	if (rc < 0)
		return rc;
	l->look->look.flags |= l->sketch.cut ? DUMP_LOOK_CONTENT_CUT : 0;
	return 0;
}

/* What the kernel counts apart. */
enum share { SHARE_ANONYMOUS, SHARE_SHARED, SHARE_FILES, SHARES };

/* What may be there of a mapping, beside private copies of what a file has. */
static enum share share_of(const struct mapping *m)
{
	struct region r;

	if (!region_of_mapping(&r, m))
		return SHARE_FILES;
	return r.kind == REGION_SHARED                          ? SHARE_SHARED
	       : r.kind == REGION_FILE || r.kind == REGION_DATA ? SHARE_FILES
	                                                        : SHARE_ANONYMOUS;
}

static void sum_shares(const struct looking *l, uint64_t sums[SHARES])
{
	for (size_t i = 0; i < l->scan.pages.count; i++) {
		const struct page_run *run = &l->scan.pages.runs[i];
		const struct mapping *m = run->file ? maps_find(&l->maps, run->start) : NULL;
		if (!run->swapped)
			sums[m ? share_of(m) : SHARE_ANONYMOUS] += run->end - run->start;
	}
}

/* A mapping, or what is known to fill it. */
static bool own_region(const struct looking *l, const struct region_count *count, size_t mapping, struct region *own)
{
	const struct mapping *m = &l->maps.list[mapping];
	const size_t i = extents_from(&l->heap.extents, m->start);
	const struct extent *x = i < l->heap.extents.count ? &l->heap.extents.list[i] : NULL;

	if (!region_count_own(count, mapping, own))
		return false;
	if (x && x->start <= m->start && m->end <= x->end)
		*own = (struct region){ .kind = x->kind, .name = x->name };
	return true;
}

/* Several kinds of what the kernel counts as one. */
static enum region_kind mixed_kind(enum share share)
{
	return share == SHARE_FILES ? REGION_FILE : share == SHARE_SHARED ? REGION_SHARED : REGION_UNKNOWN;
}

/* What is there of mappings that were not looked at to their end: of one kind, or of several that cannot be told apart.
 */
static int add_rest(struct looking *l, const struct region_count *count, enum share share, uint64_t bytes,
                    struct err *e)
{
	struct region own, rest = { .kind = REGION_KINDS, .name = "" };

	for (size_t i = 0; i < l->maps.count; i++) {
		if (!l->scan.unfinished[i] || share_of(&l->maps.list[i]) != share || !own_region(l, count, i, &own))
			continue;
		if (rest.kind == REGION_KINDS)
			rest = own;
		else if (own.kind != rest.kind)
			rest = (struct region){ .kind = mixed_kind(share), .name = "" };
		else if (strcmp(own.name, rest.name) != 0)
			rest.name = "";
	}
	if (rest.kind == REGION_KINDS)
		return 0;
	if (rest.kind == REGION_ANONYMOUS ||
	    rest.kind == REGION_UNKNOWN) /* only pages that were found are looked into */
		l->look->look.flags |= DUMP_LOOK_CONTENT_CUT;
	rest = (struct region){ .kind = rest.kind, .name = rest.name, .resident = bytes };
	return region_table_add(&l->regions, &rest, e);
}

static int count_regions(struct looking *l, struct err *e)
{
	struct region_count count = { .maps = &l->maps,
		                      .pages = &l->scan.pages,
		                      .stacks = &l->stacks,
		                      .extents = &l->heap.extents,
		                      .table = &l->regions };
	const uint64_t all[SHARES] = { l->use.anonymous, l->use.shared, l->use.files };
	uint64_t seen[SHARES] = { 0 };

	int rc = region_count(&count, e);
	sum_shares(l, seen);
	for (unsigned i = 0; i < SHARES && rc == 0 && l->scan.unfinished_count; i++)
		if (all[i] > seen[i])
			rc = add_rest(l, &count, i, all[i] - seen[i], e);
	region_table_sum(&l->regions);
	return rc;
}

static enum dump_memory_kind kind_of(enum region_kind kind)
{
	static const enum dump_memory_kind kinds[REGION_KINDS] = {
		[REGION_HEAP] = DUMP_MEMORY_MALLOC,
		[REGION_ARENA] = DUMP_MEMORY_MALLOC,
		[REGION_MAPPED] = DUMP_MEMORY_MALLOC,
		[REGION_PYTHON] = DUMP_MEMORY_PYTHON,
		[REGION_RUNTIME] = DUMP_MEMORY_RUNTIME,
		[REGION_STACK] = DUMP_MEMORY_STACKS,
		[REGION_ALLOCATOR] = DUMP_MEMORY_OTHER_LIVE,
		[REGION_ANONYMOUS] = DUMP_MEMORY_ANONYMOUS,
		[REGION_CODE] = DUMP_MEMORY_CODE,
		[REGION_DATA] = DUMP_MEMORY_DATA,
		[REGION_FILE] = DUMP_MEMORY_FILES,
		[REGION_SHARED] = DUMP_MEMORY_SHARED,
		[REGION_KERNEL] = DUMP_MEMORY_KERNEL,
		[REGION_UNKNOWN] = DUMP_MEMORY_UNKNOWN,
	};

	return kinds[kind];
}

static bool has_names(enum dump_memory_kind kind)
{
	return kind == DUMP_MEMORY_RUNTIME || kind == DUMP_MEMORY_ANONYMOUS || kind == DUMP_MEMORY_FILES ||
	       kind == DUMP_MEMORY_SHARED || kind == DUMP_MEMORY_OTHER_LIVE || kind == DUMP_MEMORY_OTHER_FREED;
}

/* Of a kind and name; without a name where there are too many. NULL: there is no room, which no kind without names
 * comes to. */
static struct memory_look_row *row_of(struct memory_look *l, enum dump_memory_kind kind, const char *name)
{
	char cut[DUMP_MEMORY_NAME_MAX];

	if (!has_names(kind))
		name = "";
	else if (l->count >= DUMP_MEMORY_ROWS_MAX && name[0]) {
		name = "";
		l->look.flags |= DUMP_LOOK_NAMES_CUT;
	}
	snprintf(cut, sizeof cut, "%s", name);
	for (uint32_t i = 0; i < l->count; i++)
		if (l->rows[i].row.kind == kind && !strcmp(l->rows[i].name, cut))
			return &l->rows[i];
	if (l->count == sizeof l->rows / sizeof *l->rows)
		return NULL;
	struct memory_look_row *row = &l->rows[l->count++];
	*row = (struct memory_look_row){ .row.kind = kind };
	strcpy(row->name, cut);
	return row;
}

static void add_row(struct memory_look *l, enum dump_memory_kind kind, const char *name, const struct region *r)
{
	const bool nameless = !strcmp(name, "/dev/zero"); /* a shared mapping of no file has that */
	struct memory_look_row *row = r->resident || r->swapped ? row_of(l, kind, nameless ? "" : name) : NULL;

	if (!row)
		return;
	row->row.resident += r->resident;
	row->row.swapped += r->swapped;
	row->row.count += r->mappings;
}

/* Takes from what malloc has what is known to be free: if all of its pages and blocks were found. */
static void split_malloc(struct looking *l)
{
	const uint64_t freed = l->sketch.freed;

	if (!l->sketch.knows_free || l->sketch.cut || l->scan.unfinished_count)
		return;
	struct memory_look_row *all = row_of(l->look, DUMP_MEMORY_MALLOC, "");
	if (!all || freed > all->row.resident)
		return;
	l->look->look.flags |= DUMP_LOOK_MALLOC;
	all->row.kind = DUMP_MEMORY_LIVE;
	all->row.resident -= freed;
	add_row(l->look, DUMP_MEMORY_FREED, "", &(struct region){ .resident = freed });
}

/* Of another allocator all extents were counted, on pages that were all found? */
static bool knows_other(const struct looking *l)
{
	return l->heap.other.name && !l->heap.other.over && !l->scan.unfinished_count;
}

/* What another allocator has: where it is not known how much of that is free it is anonymous memory. */
static void add_other(struct looking *l, const struct region *r)
{
	const uint64_t freed = l->heap.other.freed;
	struct region live = *r;

	if (!knows_other(l) || freed > r->resident) {
		add_row(l->look, DUMP_MEMORY_ANONYMOUS, "", r);
		return;
	}
	l->look->look.flags |= DUMP_LOOK_OTHER;
	live.resident -= freed;
	add_row(l->look, DUMP_MEMORY_OTHER_LIVE, r->name, &live);
	add_row(l->look, DUMP_MEMORY_OTHER_FREED, r->name, &(struct region){ .resident = freed });
}

static int take(struct looking *l, const struct memory_look_wish *wish, struct err *e)
{
	const struct region *r;
	size_t threads = 0;
	pid_t *tids = NULL;

	int rc = live_thread_maps(l->target, &l->maps, e);
	rc = rc ?: target_tids(l->target, &tids, &threads, e);
	free(tids);
	if (rc == 0 && threads <= THREADS_MAX)
		rc = stack_owners_find(&l->stacks, l->target, &l->maps, e);
	const uint64_t now = now_ns(CLOCK_THREAD_CPUTIME_ID);
	l->until_ns = now + wish->pages_ns + wish->pages_ns / 2;
	rc = rc ?: quick_scan_take(&l->scan, l->target, &l->maps, now + wish->pages_ns, e);
	rc = rc ?: target_memory_use(l->target, &l->use, e);
	l->look->look.stamp = clock_dump_stamp();
	l->look->look.rss = l->use.resident;
	l->look->look.flags |= l->scan.unfinished_count ? DUMP_LOOK_PAGES_CUT : 0;
	rc = rc ?: look_at_heap(l, e);
	rc = rc ?: count_regions(l, e);
	for (size_t i = 0; i < l->regions.count && rc == 0; i++) {
		r = &l->regions.list[i];
		if (r->kind == REGION_ALLOCATOR)
			add_other(l, r);
		else
			add_row(l->look, kind_of(r->kind), r->name, r);
	}
	return rc;
}

uint64_t memory_look_pages_ns(uint64_t resident)
{
	const uint64_t ns = MEMORY_LOOK_PAGES_NS + (resident >> 30) * PAGES_GIB_NS;

	return ns < MEMORY_LOOK_PAGES_MOST_NS ? ns : MEMORY_LOOK_PAGES_MOST_NS;
}

int memory_look_take(struct memory_look *look, const struct target *t, const struct memory_look_wish *wish,
                     struct err *e)
{
	struct looking l = { .target = t, .look = look };
	const char *other;

	look->count = 0;
	look->look = (struct dump_look){ .kind = DUMP_MEMORY_LOOK };
	int rc = take(&l, wish, e);
	if (rc == 0) {
		split_malloc(&l);
		other = l.heap.other.name ? l.heap.other.name : census_other_allocator(&l.maps);
		snprintf(look->text, sizeof look->text, "%s", other ? other : "");
		if (wish->pages)
			wish->pages(wish->context, &l.scan, &l.heap, &l.memory);
	}
	if (l.memory.cache)
		census_memory_close(&l.memory);
	if (l.has_process)
		target_memory_close(&l.process);
	region_table_free(&l.regions);
	census_heap_free(&l.heap);
	quick_scan_free(&l.scan);
	stack_owners_free(&l.stacks);
	maps_free(&l.maps);
	return rc;
}
