/* SPDX-License-Identifier: MIT */
/* census/heap/mallocng.h: what a descriptor says, and which words are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "census/heap/mallocng.h"

#define GROUP 0x7f0012345000ull

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mallocng_counts_slots),
		cmocka_unit_test(test_mallocng_believes_no_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
