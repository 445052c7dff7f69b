/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/option_table.h"

static const struct option_row rows[] = {
	{ .group = "First" },
	{ .code = 'a', .name = "all", .help = "everything" },
	{ .code = 's',
	  .name = "size",
	  .argument = "SIZE",
	  .value = OPTION_VALUE_SIZE,
	  .help = "one two three four five six seven eight nine ten 11111 twelve" },
	{ .group = "Second" },
	{ .code = OPTION_CODE_LONG, .name = "times", .argument = "[N]", .help = "so often" },
	{ .code = 'w', .name = "with-a-long-name", .argument = "VALUE", .help = "below" },
	{ 0 },
};

static const struct option_table table = {
	.program = "program",
	.before = "Usage: program\n",
	.rows = rows,
	.after = "The end.\n",
};

static void test_help_is_grouped_and_wrapped(void **state)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_non_null(out);
	option_table_help(&table, out);
	fclose(out);
	assert_string_equal(text, "Usage: program\n"
	                          "\n"
	                          "First:\n"
	                          "  -a, --all               everything\n"
	                          "  -s, --size=SIZE         one two three four five six seven eight nine ten 11111\n"
	                          "                          twelve\n"
	                          "\n"
	                          "Second:\n"
	                          "      --times[=N]         so often\n"
	                          "  -w, --with-a-long-name=VALUE\n"
	                          "                          below\n"
	                          "\n"
	                          "The end.\n");
	free(text);
}

static void test_arrays_are_those_of_getopt(void **state)
{
	static const struct option expected[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "size", required_argument, NULL, 's' },
		{ "times", optional_argument, NULL, OPTION_CODE_LONG },
		{ "with-a-long-name", required_argument, NULL, 'w' },
	};
	struct option_arrays arrays;
	size_t i;

	(void)state;
	memset(&arrays, 0xff, sizeof arrays);
	option_table_arrays(&table, &arrays);
	assert_string_equal(arrays.short_options, "as:w:");
	for (i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		assert_string_equal(arrays.long_options[i].name, expected[i].name);
		assert_int_equal(arrays.long_options[i].has_arg, expected[i].has_arg);
		assert_null(arrays.long_options[i].flag);
		assert_int_equal(arrays.long_options[i].val, expected[i].val);
	}
	assert_null(arrays.long_options[i].name);
	assert_int_equal(arrays.long_options[i].val, 0);
}

static void test_arrays_of_an_optional_letter(void **state)
{
	static const struct option_row optional[] = { { .code = 't', .name = "t", .argument = "[N]", .help = "x" },
		                                      { 0 } };
	static const struct option_table short_table = { .before = "", .rows = optional, .after = "" };
	struct option_arrays arrays;

	(void)state;
	option_table_arrays(&short_table, &arrays);
	assert_string_equal(arrays.short_options, "t::");
}

/* A table that has grown too long must not write beyond the arrays. */
static void test_arrays_end_where_there_is_no_room(void **state)
{
	static struct option_row many[OPTION_ROWS_MAX + 3];
	static const struct option_table long_table = { .before = "", .rows = many, .after = "" };
	struct option_arrays arrays;

	(void)state;
	for (int i = 0; i < OPTION_ROWS_MAX + 2; i++)
		many[i] = (struct option_row){ .code = 'a', .name = "a", .argument = "[N]", .help = "x" };
	option_table_arrays(&long_table, &arrays);
	assert_int_equal(strlen(arrays.short_options), 3 * OPTION_ROWS_MAX);
	assert_non_null(arrays.long_options[OPTION_ROWS_MAX - 1].name);
	assert_null(arrays.long_options[OPTION_ROWS_MAX].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_help_is_grouped_and_wrapped),
		cmocka_unit_test(test_arrays_are_those_of_getopt),
		cmocka_unit_test(test_arrays_of_an_optional_letter),
		cmocka_unit_test(test_arrays_end_where_there_is_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
