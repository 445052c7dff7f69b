/* SPDX-License-Identifier: MIT */
/* Who is not profiled, counted by name and reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "system/unseen.h"

static void test_add_counts_by_name_and_reason(void **state)
{
	(void)state;
	struct unseen u = { 0 };

	assert_true(unseen_add(&u, "a", 1, "it is stopped"));
	assert_false(unseen_add(&u, "a", 2, "it is stopped"));
	assert_false(unseen_add(&u, "b", 3, "it is stopped")); /* the reason is not new */
	assert_true(unseen_add(&u, "b", 4, "it is traced"));
	assert_false(unseen_add(&u, "c", 5, "it is traced"));
	assert_int_equal(u.count, 4);
	assert_int_equal(unseen_total(&u), 5);
	unseen_sort(&u);
	assert_string_equal(u.list[0].name, "a");
	assert_int_equal(u.list[0].count, 2);
	assert_int_equal(u.list[0].example, 1);
	unseen_free(&u);
}

static void test_add_does_not_tell_numbers_apart(void **state)
{
	(void)state;
	struct unseen u = { 0 };

	assert_true(unseen_add(&u, "a", 1, "cannot stop thread 8154: for 5 s, a 32-bit program x86-641 1.234"));
	assert_false(unseen_add(&u, "a", 2, "cannot stop thread 977: for 5 s, a 32-bit program x86-641 1.234"));
	assert_string_equal(u.list[0].why, "cannot stop thread N: for 5 s, a 32-bit program x86-641 1.234");
	/* In a container the numbers of processes are small. */
	assert_true(
		unseen_add(&u, "a", 3, "memattach, PID 16 (memattach, user 0); memattach --detach -p 8, within 10 s"));
	assert_false(
		unseen_add(&u, "a", 4, "memattach, PID 7 (memattach, user 0); memattach --detach -p 91, within 10 s"));
	assert_string_equal(u.list[1].why,
	                    "memattach, PID N (memattach, user N); memattach --detach -p N, within 10 s");
	unseen_free(&u);
}

/* Names are the programs' own choice. */
static void test_add_keeps_lines_whole(void **state)
{
	(void)state;
	struct unseen u = { 0 };

	unseen_add(&u, "a\tb\nc\033[2J", 1, "why\tnot\n");
	assert_string_equal(u.list[0].name, "a?b?c?[2J");
	assert_string_equal(u.list[0].why, "why?not?");
	unseen_free(&u);
}

static void test_add_stays_short(void **state)
{
	(void)state;
	struct unseen u = { 0 };
	char name[16];

	for (unsigned i = 0; i < 2 * UNSEEN_ROWS; i++) {
		snprintf(name, sizeof name, "n%u", i);
		unseen_add(&u, name, 1, "it ended");
	}
	assert_int_equal(u.count, UNSEEN_ROWS);
	assert_int_equal(u.more, UNSEEN_ROWS);
	assert_int_equal(unseen_total(&u), 2 * UNSEEN_ROWS);
	assert_false(unseen_add(&u, "n", 1, "a reason that is new: whoever says new ones would say them for ever"));
	unseen_free(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add_counts_by_name_and_reason),
		cmocka_unit_test(test_add_does_not_tell_numbers_apart),
		cmocka_unit_test(test_add_keeps_lines_whole),
		cmocka_unit_test(test_add_stays_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
