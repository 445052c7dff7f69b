/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/entry_code.h"
#include "touch/patches/detours.h"

#define MODULE 0x7f0000000000ull
#define MODULE_END 0x7f0000200000ull
#define PAGE 0x1000ull
#define MIB 0x100000ull
#define GIB (1024 * MIB)

static struct maps parsed(const char *text)
{
	struct maps m = { 0 };
	struct err e;

	assert_int_equal(maps_parse(&m, text, strlen(text), &e), 0);
	return m;
}

static uint64_t place(const char *text, uint64_t bytes, unsigned taken)
{
	struct maps m = parsed(text);
	uint64_t at = detour_place(&m, MODULE, MODULE_END, bytes, taken);

	maps_free(&m);
	return at;
}

/* Two pages are free right below the module, and 64 MiB below another mapping. */
static const char with_small_gap[] = "7efff0000000-7efff8000000 rw-p 00000000 00:00 0 \n"
				     "7efffc000000-7effffffe000 rw-p 00000000 00:00 0 \n"
				     "7f0000000000-7f0000200000 r-xp 00000000 fe:01 12 /lib/x.so\n";

static void test_detour_place_is_the_nearest_below(void **state)
{
	(void)state;
	assert_int_equal(place(with_small_gap, PAGE, 0), MODULE - PAGE);
	assert_int_equal(place(with_small_gap, 2 * PAGE, 0), MODULE - 2 * PAGE);
	assert_int_equal(place(with_small_gap, 3 * PAGE, 0), 0x7efffc000000 - 3 * PAGE);
}

static void test_detour_place_leaves_room_after_others_took_it(void **state)
{
	(void)state;
	assert_int_equal(place(with_small_gap, PAGE, 1), 0x7efffc000000 - 16 * MIB - PAGE);
	assert_int_equal(place(with_small_gap, PAGE, 3), 0x7efffc000000 - 48 * MIB - PAGE);
	/* No room above it within 64 MiB: in the gap below, if a jump reaches that. */
	assert_int_equal(place(with_small_gap, PAGE, 4),
	                 ENTRY_REACH > GIB ? 0x7efff0000000 - 64 * MIB - PAGE : MODULE - PAGE);
}

static void test_detour_place_is_in_a_small_gap_if_there_is_no_other(void **state)
{
	static const char crowded[] = "000000010000-7effffffe000 rw-p 00000000 00:00 0 \n"
				      "7f0000000000-7f0000200000 r-xp 00000000 fe:01 12 /lib/x.so\n"
				      "7f0000200000-7ffffffff000 rw-p 00000000 00:00 0 \n";

	(void)state;
	assert_int_equal(place(crowded, PAGE, 0), MODULE - PAGE);
	assert_int_equal(place(crowded, PAGE, 7), MODULE - PAGE);
	assert_int_equal(place(crowded, 3 * PAGE, 0), 0);
}

static void test_detour_place_reaches_all_of_the_module(void **state)
{
	static const char far_below[] = "7eff00000000-7f0000000000 rw-p 00000000 00:00 0 \n"
					"7f0000000000-7f0000200000 r-xp 00000000 fe:01 12 /lib/x.so\n"
					"7f0000200000-7f0000400000 rw-p 00000000 00:00 0 \n"
					"7f0000401000-7ffffffff000 rw-p 00000000 00:00 0 \n";

	(void)state;
	assert_int_equal(place(far_below, PAGE, 0), 0x7f0000400000);
	assert_int_equal(place(far_below, 2 * PAGE, 0), 0);
	for (unsigned taken = 0; taken < 8; taken++)
		assert_true(MODULE_END - place(with_small_gap, PAGE, taken) < 2 * GIB);
}

static void test_detour_place_is_not_where_heap_or_stack_grow(void **state)
{
	static const char between[] = "7effe0000000-7effe0100000 rw-p 00000000 00:00 0 [heap]\n"
				      "7effe2000000-7effe2100000 rw-p 00000000 00:00 0 [stack]\n"
				      "7effe2100000-7f0000000000 rw-p 00000000 00:00 0 \n"
				      "7f0000000000-7f0000200000 r-xp 00000000 fe:01 12 /lib/x.so\n";

	(void)state;
	/* 31 MiB between heap and stack are not enough for 16 MiB of either; below the heap nothing grows. */
	assert_int_equal(place(between, PAGE, 0), ENTRY_REACH > GIB ? 0x7effe0000000 - PAGE : 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_detour_place_is_the_nearest_below),
		cmocka_unit_test(test_detour_place_leaves_room_after_others_took_it),
		cmocka_unit_test(test_detour_place_is_in_a_small_gap_if_there_is_no_other),
		cmocka_unit_test(test_detour_place_reaches_all_of_the_module),
		cmocka_unit_test(test_detour_place_is_not_where_heap_or_stack_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
