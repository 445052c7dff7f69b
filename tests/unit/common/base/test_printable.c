/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/printable.h"

static size_t length(const char *s)
{
	return printable_sequence((const unsigned char *)s);
}

static void test_length_of_well_formed(void **state)
{
	(void)state;
	assert_int_equal(length(""), 0);
	assert_int_equal(length("a"), 1);
	assert_int_equal(length("\xc3\xa9"), 2);
	assert_int_equal(length("\xe2\x82\xac"), 3);
	assert_int_equal(length("\xf0\x9f\x98\x80"), 4);
}

static void test_length_of_ill_formed(void **state)
{
	static const char *const bad[] = { "\x80",
		                           "\xc0\x80",
		                           "\xc1\xbf",
		                           "\xc3",
		                           "\xe2\x82",
		                           "\xe0\x80\x80",
		                           "\xed\xa0\x80",
		                           "\xf0\x80\x80\x80",
		                           "\xf4\x90\x80\x80",
		                           "\xf8\x88\x80\x80\x80",
		                           "\xff" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(length(bad[i]), 0);
}

static void test_copy_takes_out_controls(void **state)
{
	char out[32];

	(void)state;
	assert_int_equal(printable_copy("a\033[31mb\n\x7f\xff\xc2\x9b", out, sizeof out), 11);
	assert_string_equal(out, "a?[31mb????");
	assert_int_equal(printable_copy("\xe2\x82\xac"
	                                "1",
	                                out, sizeof out),
	                 2);
	assert_string_equal(out, "\xe2\x82\xac"
	                         "1");
}

static void test_copy_cuts_at_whole_sequences(void **state)
{
	char out[5];

	(void)state;
	assert_int_equal(printable_copy("ab\xe2\x82\xac", out, sizeof out), 2);
	assert_string_equal(out, "ab");
}

static void test_copy_takes_out_what_turns_or_hides_text(void **state)
{
	char out[32];

	(void)state;
	assert_int_equal(printable_copy("a\xe2\x80\xae"
	                                "b\xe2\x80\xa8"
	                                "c\xd8\x9c"
	                                "d\xef\xbb\xbf\xf3\xa0\x81\x81",
	                                out, sizeof out),
	                 9);
	assert_string_equal(out, "a?b?c?d??");
	assert_int_equal(printable_copy("\xc2\xa0\xf0\x9f\x98\x80", out, sizeof out), 2);
	assert_string_equal(out, "\xc2\xa0\xf0\x9f\x98\x80");
}

static void test_copy_in_place(void **state)
{
	char text[] = "\xff\xe2\x82\xac\xc2\x9b"
		      "1\xe2\x82\xac";

	(void)state;
	assert_int_equal(printable_copy(text, text, sizeof text), 5);
	assert_string_equal(text, "?\xe2\x82\xac?1\xe2\x82\xac");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_length_of_well_formed),
		cmocka_unit_test(test_length_of_ill_formed),
		cmocka_unit_test(test_copy_takes_out_controls),
		cmocka_unit_test(test_copy_cuts_at_whole_sequences),
		cmocka_unit_test(test_copy_takes_out_what_turns_or_hides_text),
		cmocka_unit_test(test_copy_in_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
