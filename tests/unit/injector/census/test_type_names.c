/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "census/blocks/type_names.h"

static void test_type_demangle(void **state)
{
	static const char *const names[][2] = {
		{ "4Book", "Book" },
		{ "N4shop4BookE", "shop::Book" },
		{ "N4shop5CacheINS_5OrderEEE", "shop::Cache<…>" },
		{ "5CacheIiE", "Cache<…>" },
		{ "St9exception", "std::exception" },
		{ "NSt6thread6_StateE", "std::thread::_State" },
		{ "N12_GLOBAL__N_14HideE", "(anonymous namespace)::Hide" },
	};
	char name[TYPE_NAME];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_true(type_name_demangle(names[i][0], name));
		assert_string_equal(name, names[i][1]);
	}
}

static void test_type_demangle_refuses_others(void **state)
{
	static const char *const others[] = {
		"",       "N",  "NE",      "St",     "99999999999999999999x", "5Boo",  "0",
		"4Book?", "PK", "N4BookX", "i4Book", "N999999999999E",        "4BookE"
	};
	char name[TYPE_NAME], text[2000];

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(type_name_demangle(others[i], name));
	memset(text, 'a', sizeof text); /* longer than what is kept: cut */
	memcpy(text, "1990", 4);
	text[1994] = '\0';
	(void)type_name_demangle(text, name);
	assert_true(strlen(name) < TYPE_NAME);
}

static void test_type_may_count(void **state)
{
	(void)state;
	assert_true(type_name_may_follow(1));
	assert_true(type_name_may_follow(0xffffffff));            /* immortal in 3.12 */
	assert_true(type_name_may_follow(0x0003000040000000ull)); /* 3.14: flags */
	assert_false(type_name_may_follow(0));
	assert_false(type_name_may_follow(0x00007f0012345678ull));
	assert_false(type_name_may_follow(~0ull));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_type_demangle),
		cmocka_unit_test(test_type_demangle_refuses_others),
		cmocka_unit_test(test_type_may_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
