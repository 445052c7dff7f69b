/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "session/address_space.h"

#define MIB (1ull << 20)
#define TEXT (10 * MIB)

static struct address_space wish;

static int share(uint64_t room, uint64_t *missing)
{
	wish = (struct address_space){ 1024 * MIB, 1024 * MIB };
	return address_space_share(&wish, room, TEXT, missing);
}

static void test_share_leaves_enough_room_alone(void **state)
{
	static const uint64_t rooms[] = { UINT64_MAX, 1ull << 47, 2 * (2 * 1024 + 8) * MIB };
	uint64_t missing;

	(void)state;
	for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
		assert_int_equal(share(rooms[i], &missing), 0);
		assert_int_equal(wish.dump_bytes, 1024 * MIB);
		assert_int_equal(wish.tables_bytes, 1024 * MIB);
	}
}

/* Dump, tables and payload are never more than half. */
static void test_share_takes_half_at_most(void **state)
{
	uint64_t missing;

	(void)state;
	for (uint64_t room = 64 * MIB; room < 5000 * MIB; room += 7 * MIB) {
		assert_int_equal(share(room, &missing), 0);
		assert_true(wish.dump_bytes + wish.tables_bytes + 8 * MIB <= room / 2);
		assert_true(wish.dump_bytes >= 16 * MIB && wish.dump_bytes <= 1024 * MIB);
		assert_true(wish.tables_bytes >= 4 * MIB + TEXT / 4 && wish.tables_bytes <= 1024 * MIB);
	}
}

/* What it says is missing is just enough. */
static void test_share_says_what_is_missing(void **state)
{
	uint64_t missing = 0, none = 0;

	(void)state;
	for (uint64_t room = 0; room < 60 * MIB; room += MIB) {
		assert_int_equal(share(room, &missing), -ENOMEM);
		assert_int_equal(wish.dump_bytes, 1024 * MIB);
		assert_int_equal(share(room + missing, &none), 0);
		assert_int_equal(share(room + missing - 2, &none), -ENOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_leaves_enough_room_alone),
		cmocka_unit_test(test_share_takes_half_at_most),
		cmocka_unit_test(test_share_says_what_is_missing),
	};

	return cmocka_run_group_tests_name("address_space", tests, NULL, NULL);
}
