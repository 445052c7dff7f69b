/* SPDX-License-Identifier: MIT */
/* A heap of this process of which some pages are said to be in swap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "census/heap/chunk_walk.h"
#include "census/heap/heap_figures.h"

#define PAGES 64u
#define CHUNK 512u /* eight on each page */
#define GONE_FROM 16u
#define GONE_TO 48u
#define BLOCKS ((PAGES - 1) * CENSUS_PAGE / CHUNK) /* then comes the top */

static const struct glibc_layout layout = { .top = 0 };

struct heap_here {
	struct target self;
	struct target_memory process;
	struct maps maps;
	struct resident_pages pages;
	struct census_memory memory;
	struct heap_segment segment;
	struct glibc_heap heap;
};

static void set_up(struct heap_here *h, bool has_swapped)
{
	uint64_t *words = mmap(NULL, (size_t)(PAGES + 1) * CENSUS_PAGE, PROT_READ | PROT_WRITE,
	                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t arena = (uint64_t)(uintptr_t)words, start = arena + CENSUS_PAGE,
		       end = start + PAGES * CENSUS_PAGE, from = start + GONE_FROM * CENSUS_PAGE,
		       to = start + GONE_TO * CENSUS_PAGE;
	struct err e;

	assert_true(words != MAP_FAILED);
	for (uint64_t i = 0; i <= BLOCKS; i++)
		words[(CENSUS_PAGE + i * CHUNK) / 8 + 1] = (i < BLOCKS ? CHUNK : CENSUS_PAGE) | 1;
	words[0] = start + BLOCKS * CHUNK; /* the top */
	*h = (struct heap_here){ .self = { .pid = getpid(), .tid = getpid(), .pidfd = -1 },
		                 .segment = { .start = start, .end = end, .arena = arena, .main = true } };
	const struct page_run runs[] = { { .start = arena, .end = has_swapped ? from : end },
		                         { .start = from, .end = to, .swapped = true },
		                         { .start = to, .end = end } };
	for (size_t i = 0; i < (has_swapped ? 3 : 1); i++)
		assert_int_equal(resident_pages_add(&h->pages, &runs[i], &e), 0);
	assert_int_equal(maps_read(&h->maps, "/proc/self/maps", &e), 0);
	assert_int_equal(target_memory_open(&h->process, getpid(), &e), 0);
	assert_int_equal(census_memory_open(&h->memory, &h->self, &h->maps, &h->process, &h->pages, 1 << 24, &e), 0);
	h->heap = (struct glibc_heap){ .glibc.layout = &layout, .segments = &h->segment, .segment_count = 1 };
	assert_int_equal(heap_marks_open(&h->segment.marks, start, end, &e), 0);
}

static void tear_down(struct heap_here *h)
{
	munmap((void *)(uintptr_t)h->segment.arena, (size_t)(PAGES + 1) * CENSUS_PAGE); /* NOLINT */
	heap_marks_close(&h->segment.marks);
	free(h->heap.gaps);
	census_memory_close(&h->memory);
	target_memory_close(&h->process);
	resident_pages_free(&h->pages);
	maps_free(&h->maps);
}

static void count(struct heap_here *h, struct heap_figures *f)
{
	struct err e;

	*f = (struct heap_figures){ 0 };
	assert_int_equal(chunk_walk(&h->heap, &h->segment, &h->memory, &e), 0);
	heap_figures_trim(f, &h->heap, &h->pages);
	assert_int_equal(heap_figures_add(f, &h->heap, &h->pages, &e), 0);
}

static void test_all_that_is_there_is_counted(void **state)
{
	struct heap_here h;
	struct heap_figures f;

	(void)state;
	set_up(&h, false);
	count(&h, &f);
	assert_int_equal(f.live_blocks, BLOCKS);
	assert_int_equal(f.live, BLOCKS * CHUNK);
	assert_int_equal(h.heap.lost_bytes, 0);
	tear_down(&h);
}

/* What is in swap is no block: blocks before and after it are counted, with one that is not known at either end. */
static void test_what_is_in_swap_is_a_gap(void **state)
{
	const uint64_t gone = (GONE_TO - GONE_FROM) * (uint64_t)CENSUS_PAGE;
	struct heap_here h;
	struct heap_figures f;

	(void)state;
	set_up(&h, true);
	count(&h, &f);
	assert_in_range(f.live_blocks, BLOCKS - gone / CHUNK - 2, BLOCKS - gone / CHUNK);
	assert_int_equal(f.sizes[heap_size_class(CHUNK)].blocks, f.live_blocks); /* none is of another size */
	assert_int_equal(f.live, BLOCKS * CHUNK - gone);                         /* with what is at either end */
	assert_int_equal(f.trim, 0);
	assert_int_equal(h.heap.gap_count, 1);
	assert_int_equal(h.heap.absent_bytes, gone);
	assert_in_range(h.heap.lost_bytes, gone, gone + 2 * CHUNK);
	assert_true(glibc_heap_is_gap(&h.heap, h.heap.gaps->start));
	assert_false(glibc_heap_is_gap(&h.heap, h.heap.gaps->end));
	tear_down(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_that_is_there_is_counted),
		cmocka_unit_test(test_what_is_in_swap_is_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
