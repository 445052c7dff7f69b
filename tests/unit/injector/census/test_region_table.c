/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "census/heap/arena_heap.h"
#include "census/pages/region_table.h"

#define HEAP 0x7f0000000000ull

static const struct {
	const char *line;
	bool counted;
	enum region_kind kind;
	const char *name;
} mappings[] = {
	{ "00400000-00401000 r-xp 00000000 fe:01 12 /usr/bin/a b", true, REGION_FILE, "/usr/bin/a b" },
	{ "00600000-00601000 rw-p 00001000 fe:01 12 /usr/bin/a b", true, REGION_DATA, "/usr/bin/a b" },
	{ "00700000-00701000 rw-p 00000000 00:00 0 [heap]", true, REGION_HEAP, "" },
	{ "7f0000000000-7f0000002000 rw-s 00000000 00:05 7 /memfd:x (deleted)", true, REGION_SHARED, "/memfd:x" },
	{ "7f0000000000-7f0000002000 rw-s 00000000 00:05 7 /dev/shm/y", true, REGION_SHARED, "/dev/shm/y" },
	{ "7f0000000000-7f0000002000 rw-s 00000000 00:05 7 /SYSV00000000 (deleted)", true, REGION_SHARED,
	  "/SYSV00000000" },
	{ "7f0000000000-7f0000002000 rw-s 00000000 00:05 7 /dev/zero (deleted)", true, REGION_SHARED, "/dev/zero" },
	{ "7f0000000000-7f0000002000 rw-s 00000000 fe:01 7 /var/db", true, REGION_FILE, "/var/db" },
	{ "7f0000000000-7f0000002000 rw-s 00000000 00:06 7 /dev/dri/card0", false, REGION_FILE, NULL },
	{ "7f0000000000-7f0000002000 rw-p 00000000 00:0f 7 /anon_hugepage (deleted)", false, REGION_FILE, NULL },
	{ "7f0000000000-7f0000002000 rw-p 00000000 00:00 0 [anon:Go: heap]", true, REGION_ANONYMOUS,
	  "[anon:Go: heap]" },
	{ "7f0000000000-7f0000002000 rw-p 00000000 00:00 0", true, REGION_ANONYMOUS, "" },
	{ "7f0000000000-7f0000002000 rwxp 00000000 00:00 0", true, REGION_CODE, "" },
	{ "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]", true, REGION_STACK, "main" },
	{ "7ffd00000000-7ffd00021000 r--p 00000000 00:00 0 [vvar_vclock]", false, REGION_KERNEL, NULL },
	{ "7ffd00000000-7ffd00021000 r-xp 00000000 00:00 0 [vdso]", true, REGION_KERNEL, "[vdso]" },
	{ "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", false, REGION_KERNEL, NULL },
};

static void test_region_of_mapping_tells_kinds(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++) {
		struct region r;
		struct maps m;
		struct err e;
		assert_int_equal(maps_parse(&m, mappings[i].line, strlen(mappings[i].line), &e), 0);
		assert_int_equal(region_of_mapping(&r, &m.list[0]), mappings[i].counted);
		if (mappings[i].counted) {
			assert_int_equal(r.kind, mappings[i].kind);
			assert_string_equal(r.name, mappings[i].name);
		}
		maps_free(&m);
	}
}

static void test_region_table_sum_keeps_every_byte(void **state)
{
	static const char *const names[] = { "", "a", "b" };
	struct region_table t = { 0 };
	uint64_t resident = 0, swapped = 0, mappings_seen = 0;
	struct err e;

	(void)state;
	for (uint64_t i = 0; i < 3000; i++) {
		const struct region r = { .kind = i % REGION_KINDS,
			                  .name = names[i % 3],
			                  .address = i % REGION_KINDS == REGION_ARENA ? i % 5 + 1 : 0,
			                  .mappings = 1,
			                  .resident = i,
			                  .swapped = 2 * i };
		assert_int_equal(region_table_add(&t, &r, &e), 0);
	}
	region_table_sum(&t);
	const size_t rows = t.count;
	region_table_join_arenas(&t);
	assert_true(t.count < rows);
	for (size_t i = 0; i < t.count; i++) {
		resident += t.list[i].resident;
		swapped += t.list[i].swapped;
		mappings_seen += t.list[i].mappings;
		assert_true(i == 0 || t.list[i].resident <= t.list[i - 1].resident);
	}
	assert_int_equal(resident, 3000 * 2999 / 2);
	assert_int_equal(swapped, 3000 * 2999);
	assert_int_equal(mappings_seen, 3000);
	region_table_free(&t);
}

static void test_region_table_of_nothing(void **state)
{
	struct region_table t = { 0 };

	(void)state;
	region_table_sum(&t);
	region_table_join_arenas(&t);
	assert_int_equal(t.count, 0);
	region_table_free(&t);
}

static void test_arena_heap_fits_first_and_later_heaps(void **state)
{
	const struct arena_heap first = { HEAP + 48, 0, 0x21000, 0x21000 }, old = { HEAP + 32, 0, 0x21000, 0x40000 };
	const struct arena_heap later = { HEAP + 48, HEAP, ARENA_HEAP_BYTES, ARENA_HEAP_BYTES };

	(void)state;
	assert_true(arena_heap_fits(&first, HEAP));
	assert_true(arena_heap_fits(&old, HEAP));
	assert_true(arena_heap_fits(&later, HEAP + ARENA_HEAP_BYTES));
	assert_false(arena_heap_fits(&later, HEAP)); /* it would follow itself */
}

static void test_arena_heap_refuses_others(void **state)
{
	const struct arena_heap good = { HEAP + 48, 0, 0x21000, 0x21000 };
	const struct arena_heap bad[] = {
		{ HEAP + 64, 0, 0x21000, 0x21000 },
		{ HEAP + 48, HEAP + 16, 0x21000, 0x21000 },
		{ HEAP + 48, HEAP + 2 * ARENA_HEAP_BYTES, 0x21000, 0x21000 }, /* it has the arena, so it is the first */
		{ HEAP + 48, 0, 0, 0x21000 },
		{ HEAP + 48, 0, 0x21001, 0x22000 },
		{ HEAP + 48, 0, 0x21000, 0x20000 },
		{ HEAP + 48, 0, ~0ull << 12, ~0ull << 12 },
		{ 0, 0, 0, 0 },
		{ ~0ull, ~0ull, ~0ull, ~0ull },
	};

	(void)state;
	assert_true(arena_heap_fits(&good, HEAP));
	assert_false(arena_heap_fits(&good, HEAP + 0x1000));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(arena_heap_fits(&bad[i], HEAP));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_region_of_mapping_tells_kinds),
		cmocka_unit_test(test_region_table_sum_keeps_every_byte),
		cmocka_unit_test(test_region_table_of_nothing),
		cmocka_unit_test(test_arena_heap_fits_first_and_later_heaps),
		cmocka_unit_test(test_arena_heap_refuses_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
