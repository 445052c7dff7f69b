/* SPDX-License-Identifier: MIT */
/* census/allocators/mallocng.h: what a descriptor says, and which words are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "census/allocators/mallocng.h"
#include "census/pages/quick_scan.h"

#define GROUP 0x7f0012345000ull
#define SECRET 0x1234567887654321ull
#define OUTER_CLASS 31u /* 8176 bytes */
#define OUTER_BYTES 8176u
#define INNER_CLASS 3u /* 64 */

static volatile uint64_t context[16] = { SECRET, 1 }; /* malloc_context: in the data of this module */

static uint64_t shape(uint64_t last, uint64_t size_class, uint64_t pages)
{
	return last | 1 << 5 | size_class << 6 | pages << 12;
}

static bool is_group(struct mallocng_group *g, uint64_t start, uint64_t available, uint64_t freed, uint64_t word)
{
	return mallocng_group_of(g, (uint64_t[3]){ start, available | freed << 32, word });
}

static void test_mallocng_counts_slots(void **state)
{
	struct mallocng_group g;

	(void)state;
	/* Class 3 is 64 bytes: in a slot of another group, with 31 of 32 slots in use; masks may have more bits. */
	assert_true(is_group(&g, GROUP + 16, 1, 0, shape(31, 3, 0)));
	assert_true(g.slots == 32 && g.used == 31 && g.slot_bytes == 64 && g.end == 0);
	assert_true(is_group(&g, GROUP, 0xfffffff8, 2, shape(9, 3, 1)));
	assert_true(g.slots == 10 && g.used == 2 && g.end == GROUP + 4096);
	/* A single slot takes all of its mapping. */
	assert_true(is_group(&g, GROUP, 0, 0, shape(0, 63, 5)) && g.used == 1 && g.slot_bytes == 5 * 4096 - 16);
}

static void test_mallocng_believes_no_lies(void **state)
{
	struct mallocng_group g;

	(void)state;
	assert_false(is_group(&g, 0, 0, 0, shape(0, 3, 0)));          /* free */
	assert_false(is_group(&g, GROUP + 8, 0, 0, shape(0, 3, 0)));  /* not aligned */
	assert_false(is_group(&g, GROUP, 0, 0, shape(0, 50, 0)));     /* no class */
	assert_false(is_group(&g, GROUP, 0, 0, shape(1, 63, 5)));     /* one block has two slots */
	assert_false(is_group(&g, GROUP + 16, 0, 0, shape(9, 3, 1))); /* a mapping begins with a page */
	assert_false(is_group(&g, GROUP, 0, 0, shape(31, 30, 1)));    /* more than its mapping */
	assert_false(is_group(&g, GROUP, 0, 0, shape(0, 63, 1ull << 40)));
}

/* A heap with an area, a group of two slots, and in the first of these a group of 32; inner: which of these are free.
 */
static void make_heap(uint64_t *area, uint64_t *outer, uint32_t outer_free, uint32_t inner_free)
{
	uint64_t *descriptors = area + 3, *inner = outer + 2;
	const uint64_t words[][5] = {
		{ 0, 0, (uintptr_t)outer, outer_free, shape(1, OUTER_CLASS, 4) },
		{ 0, 0, (uintptr_t)inner, inner_free, shape(31, INNER_CLASS, 0) },
	};

	context[7] = context[8] = (uintptr_t)area;
	area[0] = SECRET;
	area[2] = 2;
	memcpy(descriptors, words, sizeof words);
	outer[0] = (uintptr_t)descriptors;
	inner[0] = (uintptr_t)(descriptors + 5);
}

static void count(struct other_heap *h)
{
	struct target self = { .pid = getpid(), .tid = getpid(), .pidfd = -1 };
	struct target_memory process;
	struct census_memory memory;
	struct extents extents = { 0 };
	struct quick_scan scan;
	struct maps maps;
	struct err e;

	*h = (struct other_heap){ 0 };
	assert_int_equal(maps_read(&maps, "/proc/self/maps", &e), 0);
	assert_int_equal(quick_scan_take(&scan, &self, &maps, UINT64_MAX, &e), 0);
	assert_int_equal(target_memory_open(&process, getpid(), &e), 0);
	assert_int_equal(census_memory_open(&memory, &self, &maps, &process, &scan.pages, 1u << 30, &e), 0);
	assert_int_equal(mallocng_take(h, &maps, &memory, &extents, &e), 0);
	census_memory_close(&memory);
	target_memory_close(&process);
	quick_scan_free(&scan);
	extents_free(&extents);
	maps_free(&maps);
}

/* A group is no block of the one around it; nor where that was read when it had no such slot in use yet. */
static void test_mallocng_takes_no_more_than_was_counted(void **state)
{
	uint64_t *pages =
		mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t *area = pages, *outer = pages + 512;
	struct other_heap h;

	(void)state;
	assert_true((void *)pages != MAP_FAILED);
	make_heap(area, outer, 0, 3);
	count(&h);
	assert_string_equal(h.name, "musl");
	assert_int_equal(h.live_blocks, 30 + 1);
	assert_int_equal(h.live_bytes, 30 * 64 + OUTER_BYTES);
	assert_int_equal(h.lost_bytes, 0);
	assert_int_equal(h.live + h.freed, 4 * 4096);
	make_heap(area, outer, 3, 0);
	count(&h);
	assert_int_equal(h.live_blocks, 32);
	assert_int_equal(h.live_bytes, 32 * 64);
	assert_int_equal(h.lost_bytes, OUTER_BYTES);
	assert_int_equal(h.live + h.freed, 4 * 4096);
	for (unsigned i = 0; i < h.size_count; i++)
		assert_true(h.sizes[i].blocks == (h.sizes[i].bytes == 64 ? 32 : 0));
	munmap(pages, 8 * 4096);
}

/* Of areas that lead round and round each is counted a few times at most. */
static void test_mallocng_leaves_rings_of_areas(void **state)
{
	const size_t bytes = 15 * 4096;
	uint64_t *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t *areas[3] = { pages, pages + 512, pages + 1024 };
	struct other_heap h;

	(void)state;
	assert_true((void *)pages != MAP_FAILED);
	for (unsigned i = 0; i < 3; i++)
		make_heap(areas[i], pages + (3 + 4 * i) * 512, 0, 0);
	for (unsigned i = 0; i < 3; i++)
		areas[i][1] = (uintptr_t)areas[i < 2 ? i + 1 : 1];
	context[7] = context[8] = (uintptr_t)areas[0];
	count(&h);
	assert_string_equal(h.name, "musl");
	assert_true(h.over);
	assert_in_range(h.live_blocks, 3 * 32, 9 * 33);
	munmap(pages, bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mallocng_counts_slots),
		cmocka_unit_test(test_mallocng_believes_no_lies),
		cmocka_unit_test(test_mallocng_takes_no_more_than_was_counted),
		cmocka_unit_test(test_mallocng_leaves_rings_of_areas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
