/* SPDX-License-Identifier: MIT */
#include "census/census.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "census/arena_heap.h"
#include "base/cleanup.h"
#include "process/live_thread.h"
#include "process/page_scan.h"
#include "files/whole_io.h"

/* A stack of a thread, found by its stack pointer. */
struct stack {
	size_t mapping;
	const char *name;
};

struct taking {
	struct census *census;
	struct target_memory memory;
	struct page_scan pages;
	struct stack *stacks; /* by mapping */
	size_t stack_count;
};

static int compare_stacks(const void *a, const void *b)
{
	const struct stack *x = a, *y = b;

	return x->mapping < y->mapping ? -1 : x->mapping > y->mapping;
}

/* Memory of its own above a guard: so the C library lays out a stack. Fibers and goroutines may run anywhere. */
static bool is_stack(const struct maps *maps, const struct mapping *m)
{
	return !m->path[0] && !m->inode && !m->shared && m->prot & PROT_WRITE && m > maps->list &&
	       m[-1].end == m->start && m[-1].prot == PROT_NONE;
}

static void find_stack(struct taking *t, const struct thread_info *thread, size_t number)
{
	struct census *c = t->census;
	const struct mapping *m = thread->call.sp ? maps_find(&c->maps, thread->call.sp) : NULL;
	char path[64];

	if (m && !strcmp(m->path, "[stack]"))
		return;
	if (!m || !is_stack(&c->maps, m)) {
		c->stackless += !thread->first;
		return;
	}
	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", c->target->pid, thread->tid);
	if (whole_text(path, c->thread_names[number], sizeof c->thread_names[number]) < 0)
		c->thread_names[number][0] = '\0';
	c->thread_names[number][strcspn(c->thread_names[number], "\n")] = '\0';
	t->stacks[t->stack_count++] = (struct stack){ (size_t)(m - c->maps.list), c->thread_names[number] };
}

static int find_stacks(struct taking *t, struct err *e)
{
	struct census *c = t->census;
	AUTO_FREE struct thread_info *threads = NULL;

	int rc = target_threads(c->target, &threads, &c->threads, e);
	if (rc < 0)
		return rc;
	c->thread_names = calloc(c->threads + 1, sizeof *c->thread_names);
	t->stacks = calloc(c->threads + 1, sizeof *t->stacks);
	if (!c->thread_names || !t->stacks)
		return err_set(e, ENOMEM, "no memory for its %zu threads", c->threads);
	for (size_t i = 0; i < c->threads; i++)
		find_stack(t, &threads[i], i);
	qsort(t->stacks, t->stack_count, sizeof *t->stacks, compare_stacks);
	return 0;
}

/* Adds bytes of a run to what they belong to. */
static int add_bytes(struct taking *t, struct region r, const struct page_run *run, uint64_t bytes, struct err *e)
{
	*(run->swapped ? &r.swapped : &r.resident) = bytes;
	*(run->swapped ? &t->census->swapped : &t->census->resident) += bytes;
	return region_table_add(&t->census->regions, &r, e);
}

/* The heap of an arena that may begin at an address, of which a page is there. */
static bool find_heap(struct taking *t, uint64_t at, uint64_t end, struct arena_heap *heap)
{
	struct err ignored;

	return at % ARENA_HEAP_BYTES == 0 && target_read(&t->memory, at, heap, sizeof *heap, &ignored) == 0 &&
	       arena_heap_fits(heap, at, end);
}

/* Pages that are alike: those of heaps belong to arenas, whose heaps the kernel may show as one mapping with others. */
static int add_run(struct taking *t, const struct mapping *m, const struct region *own, struct region *heap,
                   uint64_t *heap_end, const struct page_run *run, struct err *e)
{
	const bool anonymous = own->kind == REGION_ANONYMOUS && !m->path[0];
	struct arena_heap found;
	int rc = 0;

	for (uint64_t at = run->start, end; at < run->end && rc == 0; at = end) {
		end = at - at % ARENA_HEAP_BYTES + ARENA_HEAP_BYTES;
		if (anonymous && !run->swapped && find_heap(t, at, m->end, &found)) {
			*heap = (struct region){ REGION_ARENA, "", found.arena, 1, found.bytes, 0, 0 };
			*heap_end = at + found.bytes;
			rc = region_table_add(&t->census->regions, heap, e);
			heap->mappings = heap->reserved = 0;
		}
		end = at < *heap_end && *heap_end < end ? *heap_end : end;
		end = end < run->end ? end : run->end;
		if (rc == 0)
			rc = add_bytes(t, at < *heap_end ? *heap : *own, run, end - at, e);
	}
	return rc;
}

static int add_mapping(struct taking *t, size_t i, size_t *next_stack, struct err *e)
{
	const struct mapping *m = &t->census->maps.list[i];
	struct region own, heap = { .kind = REGION_ARENA, .name = "" };
	uint64_t heap_end = 0;

	if (!region_of_mapping(&own, m))
		return 0;
	if (*next_stack < t->stack_count && t->stacks[*next_stack].mapping == i) {
		own.kind = REGION_STACK;
		own.name = t->stacks[*next_stack].name;
	}
	while (*next_stack < t->stack_count && t->stacks[*next_stack].mapping == i)
		++*next_stack;
	struct region whole = own;
	whole.mappings = 1;
	whole.reserved = m->end - m->start;
	int rc = region_table_add(&t->census->regions, &whole, e);
	for (uint64_t at = m->start; at < m->end && rc == 0;) {
		if (!page_scan_step(&t->pages, &at, m->end))
			break; /* unmapped meanwhile */
		for (size_t k = 0; k < t->pages.count && rc == 0; k++)
			rc = add_run(t, m, &own, &heap, &heap_end, &t->pages.runs[k], e);
	}
	return rc;
}

static int take_all(struct taking *t, struct err *e)
{
	struct census *c = t->census;
	struct memory_use use = { 0 };
	size_t next_stack = 0;

	int rc = target_memory_use(c->target, &use, e);
	c->rss_before = use.resident;
	if (rc == 0)
		rc = live_thread_maps(c->target, &c->maps, e);
	if (rc == 0)
		rc = find_stacks(t, e);
	if (rc < 0)
		return rc;
	page_scan_prepare(&t->pages, c->target, &c->maps);
	for (size_t i = 0; i < c->maps.count && rc == 0; i++)
		rc = add_mapping(t, i, &next_stack, e);
	if (rc == 0)
		rc = target_memory_use(c->target, &use, e);
	c->rss_after = use.resident;
	region_table_sum(&c->regions);
	return rc;
}

int census_take(struct census *c, const struct target *target, struct err *e)
{
	struct taking t = { .census = c };
	int writable = -1;

	*c = (struct census){ .target = target };
	int rc = live_thread_memory(target, &t.memory, &writable, e);
	if (rc == -EACCES || rc == -EPERM)
		target_explain_permission(target, e);
	if (rc < 0)
		return rc;
	close(writable);
	rc = page_scan_open(&t.pages, target, e);
	if (rc == 0) {
		rc = take_all(&t, e);
		page_scan_close(&t.pages);
	}
	target_memory_close(&t.memory);
	free(t.stacks);
	return rc;
}

void census_free(struct census *c)
{
	region_table_free(&c->regions);
	maps_free(&c->maps);
	free(c->thread_names);
	*c = (struct census){ 0 };
}

uint64_t census_gap(const struct census *c)
{
	const uint64_t low = c->rss_before < c->rss_after ? c->rss_before : c->rss_after;
	const uint64_t high = c->rss_before < c->rss_after ? c->rss_after : c->rss_before;

	return c->resident < low ? low - c->resident : c->resident > high ? c->resident - high : 0;
}
