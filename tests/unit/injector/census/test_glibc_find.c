/* SPDX-License-Identifier: MIT */
/* Where glibc's malloc is in a process: this one, whose heap grows after its mappings were read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "census/heap/glibc_find.h"
#include "maps/maps.h"

#define BLOCKS 2000u
#define MIB (1ull << 20)

static struct target self;
static struct target_memory memory;
static struct maps maps;
static struct resident_pages pages;

static int set_up(void **state)
{
	struct err e;

	(void)state;
	self = (struct target){ .pid = getpid(), .tid = getpid(), .pidfd = -1 };
	free(malloc(1)); /* there is a heap */
	if (maps_read(&maps, "/proc/self/maps", &e) < 0 || target_memory_open(&memory, getpid(), &e) < 0)
		return -1;
	for (size_t i = 0; i < maps.count; i++) {
		const struct page_run run = { .start = maps.list[i].start, .end = maps.list[i].end };
		if (maps.list[i].prot & 1 && resident_pages_add(&pages, &run, &e) < 0)
			return -1;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	target_memory_close(&memory);
	resident_pages_free(&pages);
	maps_free(&maps);
	return 0;
}

static struct glibc find(void)
{
	struct census_memory census;
	struct glibc found;
	struct err e;

	assert_int_equal(census_memory_open(&census, &self, &maps, &memory, &pages, 64 * MIB, &e), 0);
	glibc_find(&found, &self, &maps, &census, NULL, 0);
	census_memory_close(&census);
	return found;
}

/* Free blocks of many sizes in what has come since: the bins lead there. */
static void test_glibc_find_in_a_heap_that_grows(void **state)
{
	static void *blocks[BLOCKS];
	const struct glibc before = find();

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* its malloc is another one */
#endif
	assert_non_null(before.layout);
	for (unsigned i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(1100 + i % 200 * 16);
	for (unsigned i = 0; i < BLOCKS; i += 2)
		free(blocks[i]);
	void *sorts = malloc(100000); /* what was freed goes into bins of its size */
	const struct glibc after = find();
	assert_non_null(after.layout);
	assert_true(after.main_arena == before.main_arena && after.heap_start == before.heap_start);
	free(sorts);
	for (unsigned i = 1; i < BLOCKS; i += 2)
		free(blocks[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glibc_find_in_a_heap_that_grows),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
