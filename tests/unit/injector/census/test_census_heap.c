/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "census/pages/extents.h"
#include "census/heap/heap_figures.h"
#include "census/heap/heap_marks.h"
#include "census/heap/python_pools.h"
#include "census/pages/resident_pages.h"

#define BASE 0x7f0000000000ull

/* Chunks of all sizes, side by side: what was put in comes out, forwards and backwards. */
static void test_heap_marks_keep_chunks(void **state)
{
	struct heap_marks m;
	struct err e;
	uint64_t at = BASE;

	(void)state;
	assert_int_equal(heap_marks_open(&m, BASE, BASE + (1 << 20), &e), 0);
	assert_int_equal(heap_marks_next(&m, BASE), m.end);
	for (uint64_t i = 0; i < 1000; at += 32 + i % 60 * 16, i++)
		heap_marks_begin(&m, at, i % 3 == 0);
	const uint64_t end = at;
	at = BASE;
	for (uint64_t i = 0; i < 1000; i++) {
		const uint64_t next = at + 32 + i % 60 * 16;
		assert_true(heap_marks_begins(&m, at));
		assert_false(heap_marks_begins(&m, at + 16));
		assert_int_equal(heap_marks_is_free(&m, at), i % 3 == 0);
		assert_int_equal(heap_marks_next(&m, at + 16), i < 999 ? next : m.end);
		assert_int_equal(heap_marks_previous(&m, next), at);
		at = next;
	}
	assert_int_equal(heap_marks_previous(&m, BASE), 0);
	heap_marks_clear(&m, BASE + 32, end);
	assert_int_equal(heap_marks_next(&m, BASE + 16), m.end);
	assert_false(heap_marks_begins(&m, m.end) || heap_marks_begins(&m, BASE - 16) ||
	             heap_marks_begins(&m, BASE + 8));
	heap_marks_close(&m);
}

/* Between its chunks nothing is written: the marks of a heap have addresses for 1/64 of its length. */
static void test_heap_marks_clear_only_chunks(void **state)
{
	const uint64_t end = BASE + (1ull << 30);
	struct heap_marks m;
	struct err e;

	(void)state;
	assert_int_equal(heap_marks_open(&m, BASE, end, &e), 0);
	heap_marks_begin(&m, BASE, false);
	heap_marks_begin(&m, BASE + 32, true);
	assert_int_equal(mprotect((char *)m.begins + CENSUS_PAGE, m.bytes - 2 * CENSUS_PAGE, PROT_READ), 0);
	heap_marks_clear(&m, BASE + 32, end);
	assert_int_equal(heap_marks_next(&m, BASE + 16), m.end);
	assert_true(heap_marks_begins(&m, BASE));
	heap_marks_close(&m);
}

/* Two chunks far from each other, and those that were cleared between them: found from anywhere, in a few steps. */
static void test_heap_marks_pass_long_chunks(void **state)
{
	static const uint64_t lengths[] = { 32,        1024,           1040,           64 << 10,     (64 << 10) + 16,
		                            (4 << 20), (4 << 20) - 16, (4 << 20) + 16, 256ull << 20, 1ull << 32 };
	struct heap_marks m;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (uint64_t from = BASE; from < BASE + 4096; from += 1008) {
			const uint64_t last = from + lengths[i], end = (last + 8192) & ~4095ull;
			assert_int_equal(heap_marks_open(&m, BASE, end, &e), 0);
			heap_marks_begin(&m, from, false);
			heap_marks_begin(&m, from + lengths[i] / 2 / 16 * 16, false);
			heap_marks_clear(&m, from + 16, end);
			heap_marks_begin(&m, last, false);
			assert_int_equal(heap_marks_next(&m, from + 16), last);
			assert_int_equal(heap_marks_next(&m, last + 16), m.end);
			assert_int_equal(heap_marks_previous(&m, last), from);
			assert_int_equal(heap_marks_previous(&m, last - 8), from);
			assert_int_equal(heap_marks_previous(&m, end), last);
			assert_int_equal(heap_marks_previous(&m, from), 0);
			for (unsigned n = 0; n < 100000; n++) /* word by word they would take minutes */
				assert_int_equal(heap_marks_previous(&m, last) + heap_marks_next(&m, from + 16),
				                 from + last);
			heap_marks_close(&m);
		}
}

/* A block that is said to be as long as 64 GiB, in a heap of two pages: it costs no memory. */
static void test_heap_figures_take_no_memory_for_holes(void **state)
{
	const uint64_t end = BASE + (64ull << 30);
	struct heap_segment s = { .start = BASE, .end = end, .main = true, .top = end - CENSUS_PAGE };
	const struct glibc_heap h = { .segments = &s, .segment_count = 1 };
	const struct page_run runs[] = { { BASE, BASE + CENSUS_PAGE, false, false, false },
		                         { end - CENSUS_PAGE, end, false, false, false } };
	struct resident_pages p = { 0 };
	struct heap_figures *f = calloc(1, sizeof *f);
	struct rusage before, after;
	struct err e;

	(void)state;
	assert_non_null(f);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(resident_pages_add(&p, &runs[i], &e), 0);
	assert_int_equal(heap_marks_open(&s.marks, s.start, s.end, &e), 0);
	heap_marks_begin(&s.marks, BASE, false);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(heap_figures_add(f, &h, &p, &e), 0);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(f->live, CENSUS_PAGE);
	assert_int_equal(f->live_bytes, end - CENSUS_PAGE - BASE);
	assert_int_equal(f->resident, 2 * CENSUS_PAGE);
	assert_true(after.ru_maxrss - before.ru_maxrss < 8 << 10); /* KiB; a number for each page are 32 MiB */
	assert_true(glibc_heap_is_reserve(&p, BASE, end + CENSUS_PAGE));
	assert_false(glibc_heap_is_reserve(&p, BASE, end));
	heap_marks_close(&s.marks);
	resident_pages_free(&p);
	free(f);
}

static void test_size_classes_hold_their_sizes(void **state)
{
	unsigned before = 0;

	(void)state;
	for (uint64_t bytes = 32; bytes < 1ull << 46; bytes += bytes < 1 << 17 ? 16 : bytes / 3 & ~15ull) {
		const unsigned class = heap_size_class(bytes);
		assert_true(class < SIZE_CLASSES && class >= before);
		assert_true(heap_size_class_least(class) <= bytes && bytes <= heap_size_class_most(class));
		before = class;
	}
	assert_int_equal(heap_size_class_least(heap_size_class(104)), 96); /* sizes of chunks are multiples of 16 */
	assert_true(heap_size_class(UINT64_MAX) < SIZE_CLASSES);
}

static void test_extents_are_disjoint(void **state)
{
	struct extents x = { 0 };
	struct err e;
	const uint64_t starts[] = { 90, 10, 15, 50, 20, 60 }, ends[] = { 95, 20, 30, 60, 40, 50 };

	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(extents_add(&x, &(struct extent){ .start = starts[i], .end = ends[i] }, &e), 0);
	extents_sort(&x);
	assert_int_equal(x.count, 4); /* 15 overlaps, 60 .. 50 is empty */
	assert_int_equal(x.list[1].start, 20);
	assert_int_equal(extents_from(&x, 9), 0);
	assert_int_equal(extents_from(&x, 40), 2);
	assert_int_equal(extents_from(&x, 95), 4);
	extents_free(&x);
}

static void test_resident_pages_sum_and_hold(void **state)
{
	struct resident_pages p = { 0 };
	struct err e;
	const struct page_run runs[] = { { BASE, BASE + 8192, false, false, false },
		                         { BASE + 8192, BASE + 12288, false, false, false },
		                         { BASE + 12288, BASE + 16384, true, false, false },
		                         { BASE + 20480, BASE + 24576, false, false, true } };

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(resident_pages_add(&p, &runs[i], &e), 0);
	assert_int_equal(p.count, 3); /* two were alike */
	assert_int_equal(resident_pages_sum(&p, 0, UINT64_MAX), 16384);
	assert_int_equal(resident_pages_sum(&p, BASE + 100, BASE + 200), 100);
	assert_true(resident_pages_hold(&p, BASE + 1, BASE + 12288));
	assert_false(resident_pages_hold(&p, BASE, BASE + 12289)); /* in swap */
	assert_int_equal(resident_pages_next(&p, BASE + 12288), BASE + 20480);
	assert_int_equal(resident_pages_next(&p, BASE + 24576), UINT64_MAX);
	resident_pages_free(&p);
}

static void set_pool(uint64_t words[6], uint32_t live, uint32_t class, uint32_t carved, uint32_t last)
{
	words[0] = live;
	words[1] = words[2] = words[3] = 0;
	words[4] = 7 | (uint64_t) class << 32;
	words[5] = carved | (uint64_t)last << 32;
}

static void test_pool_read_believes_only_pools(void **state)
{
	struct pool pool;
	uint64_t words[6];

	(void)state;
	set_pool(words, 2, 3, 48 + 3 * 64, 16384 - 64);
	assert_int_equal(pool_read(&pool, BASE, words), 16384);
	assert_int_equal(pool.live, 2);
	assert_int_equal(pool.block_bytes, 64);
	assert_int_equal(pool_read(&pool, BASE + 4096, words), 0); /* at a multiple of its size */
	set_pool(words, 2, 3, 48 + 3 * 64, 4096 - 64);
	assert_int_equal(pool_read(&pool, BASE + 4096, words), 4096);
	words[1] = BASE + 3 * 4096;
	assert_int_equal(pool_read(&pool, BASE + 4096, words), 0); /* a free block elsewhere */
	set_pool(words, 64, 3, 48 + 3 * 64, 4096 - 64);
	assert_int_equal(pool_read(&pool, BASE + 4096, words), 0); /* more than fit */
	set_pool(words, 2, 32, 48 + 3 * 528, 16384 - 528);
	assert_int_equal(pool_read(&pool, BASE, words), 0); /* no such size */
	set_pool(words, 2, 3, 50, 16384 - 64);
	assert_int_equal(pool_read(&pool, BASE, words), 0);
	memset(words, 0, sizeof words);
	assert_int_equal(pool_read(&pool, BASE, words), 0);
	memset(words, 0xff, sizeof words);
	assert_int_equal(pool_read(&pool, BASE, words), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap_marks_keep_chunks),
		cmocka_unit_test(test_heap_marks_clear_only_chunks),
		cmocka_unit_test(test_heap_marks_pass_long_chunks),
		cmocka_unit_test(test_heap_figures_take_no_memory_for_holes),
		cmocka_unit_test(test_size_classes_hold_their_sizes),
		cmocka_unit_test(test_extents_are_disjoint),
		cmocka_unit_test(test_resident_pages_sum_and_hold),
		cmocka_unit_test(test_pool_read_believes_only_pools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
