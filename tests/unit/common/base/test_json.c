/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/json.h"

/* What fn writes; to be freed. */
static char *written(void (*fn)(struct json *))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json j = { .out = out };

	assert_non_null(out);
	fn(&j);
	fclose(out);
	return text;
}

static void nested(struct json *j)
{
	json_object(j, NULL);
	json_unsigned(j, "a", UINT64_MAX);
	json_array(j, "b");
	json_array_end(j);
	json_object(j, "c");
	json_object_end(j);
	json_array(j, "d");
	json_object(j, NULL);
	json_bool(j, "e", true);
	json_string(j, "f", NULL);
	json_object_end(j);
	json_object(j, NULL);
	json_object(j, "g");
	json_object(j, "h");
	json_bool(j, "i", false);
	json_bool(j, "k", false);
	json_object_end(j);
	json_object_end(j);
	json_object_end(j);
	json_array_end(j);
	json_object_end(j);
}

static void test_nesting(void **state)
{
	char *text = written(nested);

	(void)state;
	assert_string_equal(text, "{\n"
	                          "  \"a\": 18446744073709551615,\n"
	                          "  \"b\": [],\n"
	                          "  \"c\": {},\n"
	                          "  \"d\": [\n"
	                          "    {\n"
	                          "      \"e\": true,\n"
	                          "      \"f\": null\n"
	                          "    },\n"
	                          "    {\n"
	                          "      \"g\": {\"h\":{\"i\":false,\"k\":false}}\n"
	                          "    }\n"
	                          "  ]\n"
	                          "}\n");
	free(text);
}

static void strings(struct json *j)
{
	json_string(j, NULL, "q\" b\\ \n\t\001 \xff\xc3\xa9\x7f");
}

static void test_strings_are_escaped(void **state)
{
	char *text = written(strings);

	(void)state;
	assert_string_equal(text, "\"q\\\" b\\\\ \\u000a\\u0009\\u0001 \\ufffd\xc3\xa9\\u007f\"");
	free(text);
}

static void hidden(struct json *j)
{
	json_string(j, NULL,
	            "\xc2\x9b"
	            "31m\xe2\x80\xae\xf3\xa0\x81\x81\xf0\x9f\x98\x80");
}

static void test_what_acts_on_a_terminal_is_escaped(void **state)
{
	char *text = written(hidden);

	(void)state;
	assert_string_equal(text, "\"\\u009b31m\\u202e\\udb40\\udc41\xf0\x9f\x98\x80\"");
	free(text);
}

static void numbers(struct json *j)
{
	json_array(j, NULL);
	json_number(j, NULL, 0);
	json_number(j, NULL, 4096);
	json_number(j, NULL, -1.5);
	json_number(j, NULL, 0.1);
	json_number(j, NULL, 1.0 / 3);
	json_number(j, NULL, 1e300);
	json_number(j, NULL, 1e15);
	json_number(j, NULL, 0x1p53 - 1);
	json_number(j, NULL, 0x1p53 + 2);
	json_number(j, NULL, 5e-324);
	json_number(j, NULL, -1.7976931348623157e308);
	json_hex(j, NULL, 0);
	json_hex(j, NULL, UINT64_MAX);
	json_number(j, NULL, NAN);
	json_number(j, NULL, INFINITY);
	json_array_end(j);
}

static void test_numbers_read_back(void **state)
{
	char *text = written(numbers);

	(void)state;
	assert_string_equal(
		text,
		"[\n  0,\n  4096,\n  -1.5,\n  0.1,\n  0.33333333333333331,\n  1e+300,\n  1000000000000000,\n"
		"  9007199254740991,\n  9007199254740994,\n  4.94065645841247e-324,\n  -1.7976931348623157e+308,\n"
		"  \"0x0\",\n  \"0xffffffffffffffff\",\n  null,\n  null\n]\n");
	free(text);
}

static double value_of(int i)
{
	return ldexp(1 + i * 0x1.fedcba987654bp-15, i % 1000 - 500) * (i % 2 ? 1 : -1);
}

static void many_numbers(struct json *j)
{
	json_array(j, NULL);
	for (int i = 0; i < 20000; i++)
		json_number(j, NULL, value_of(i));
	json_array_end(j);
}

static void test_no_digit_is_lost(void **state)
{
	char *text = written(many_numbers), *at = text + 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		assert_true(strtod(at, &at) == value_of(i));
		at++; /* the comma */
	}
	assert_string_equal(at, "]\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_strings_are_escaped),
		cmocka_unit_test(test_what_acts_on_a_terminal_is_escaped),
		cmocka_unit_test(test_numbers_read_back),
		cmocka_unit_test(test_no_digit_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
