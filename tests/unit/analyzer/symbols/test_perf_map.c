/* SPDX-License-Identifier: MIT */
/* perf-PID.map as just-in-time compilers write it, and as nobody should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "symbols/perf_map.h"

static struct perf_map map_of(const char *text, size_t bytes)
{
	struct perf_map map = { 0 };
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, bytes), bytes);
	assert_int_equal(perf_map_read(&map, fd), 0);
	close(fd);
	return map;
}

static void test_find(void **state)
{
	static const char text[] = "7f0000001000 20 LazyCompile:~handler /app/a.js:3\n"
				   "0x7f0000002000 10 py::main:/app/b.py\n"
				   "7f0000001000 10 newer\n"
				   "7f0000001040 40 last";
	struct perf_map map = map_of(text, sizeof text - 1);

	(void)state;
	assert_string_equal(perf_map_find(&map, 0x7f000000100f), "newer");
	assert_string_equal(perf_map_find(&map, 0x7f0000001010), "LazyCompile:~handler /app/a.js:3");
	assert_string_equal(perf_map_find(&map, 0x7f0000002000), "py::main:/app/b.py");
	assert_null(perf_map_find(&map, 0x7f0000001020));
	assert_null(perf_map_find(&map, 0x7f0000000fff));
	assert_null(perf_map_find(&map, 0x7f0000001040)); /* a line without an end is being written */
	assert_null(perf_map_find(&map, UINT64_MAX));
	perf_map_done(&map);
}

static void test_lines_that_make_no_sense(void **state)
{
	static const char text[] = "\n \n10\n10 10\n10 10 \n-10 10 a\n10 0 b\nzz 10 c\nffffffffffffffff 10 d\n"
				   "10 99999999999999999 e\n100 10 \0 f\n20 10 good\n";
	struct perf_map map = map_of(text, sizeof text - 1), nothing = map_of("", 0);

	(void)state;
	assert_int_equal(map.count, 1);
	assert_string_equal(perf_map_find(&map, 0x2f), "good");
	assert_null(perf_map_find(&map, 0x30));
	assert_null(perf_map_find(&nothing, 0));
	perf_map_done(&map);
	perf_map_done(&nothing);
}

/* One symbol over all of memory does not make each look at an address pass all those that begin after it. */
static void test_find_is_bounded(void **state)
{
	char text[2000] = "0 fffffffffffff0 all\n";
	size_t used = strlen(text);

	(void)state;
	for (int i = 1; i <= 40; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%x 1 f%d\n", 16 * i, i);
	struct perf_map map = map_of(text, used);
	assert_string_equal(perf_map_find(&map, 0x15), "all");
	assert_string_equal(perf_map_find(&map, 0x20), "f2");
	assert_null(perf_map_find(&map, 16 * 40 + 1));
	perf_map_done(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_lines_that_make_no_sense),
		cmocka_unit_test(test_find_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
