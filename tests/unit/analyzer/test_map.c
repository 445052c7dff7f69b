/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"

static void test_map_keeps_what_it_was_given(void **state)
{
	struct map map = { 0 };

	(void)state;
	assert_null(map_find(&map, 0));
	for (uint32_t i = 0; i < 50000; i++)
		assert_int_equal(map_put(&map, i * 0x100000000u, i), 0); /* 0 is a key like others */
	assert_int_equal(map.count, 50000);
	for (uint32_t i = 0; i < 50000; i++) {
		const uint32_t *value = map_find(&map, i * 0x100000000u);
		assert_non_null(value);
		assert_int_equal(*value, i);
		assert_null(map_find(&map, i * 0x100000000u + 1));
	}
	map_done(&map);
}

static void test_map_put_replaces(void **state)
{
	struct map map = { 0 };

	(void)state;
	assert_int_equal(map_put(&map, 7, 1), 0);
	assert_int_equal(map_put(&map, 7, 2), 0);
	assert_int_equal(map.count, 1);
	assert_int_equal(*map_find(&map, 7), 2);
	map_done(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_keeps_what_it_was_given),
		cmocka_unit_test(test_map_put_replaces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
