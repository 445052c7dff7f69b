/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/line_width.h"

/* What a terminal of so many columns gets; 0: a pipe. */
static const char *put(unsigned short columns, size_t used, size_t indent, const char *text)
{
	static char got[1024];
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	int reader, writer, ends[2];

	if (columns) {
		assert_int_equal(openpty(&reader, &writer, NULL, NULL, &size), 0);
	} else {
		assert_int_equal(pipe(ends), 0);
		reader = ends[0];
		writer = ends[1];
	}
	FILE *out = fdopen(writer, "w");
	assert_non_null(out);
	line_width_put(out, used, indent, text);
	fclose(out);
	size_t used_bytes = 0; /* a terminal may give it line by line, and an error at the end */
	for (ssize_t n; (n = read(reader, got + used_bytes, sizeof got - 1 - used_bytes)) > 0;)
		used_bytes += (size_t)n;
	assert_true(used_bytes > 0);
	got[used_bytes] = 0;
	close(reader);
	return got;
}

static void test_a_message_goes_on_in_further_lines(void **state)
{
	(void)state;
	assert_string_equal(put(10, 0, 2, "one two three four"), "one two\r\n  three\r\n  four\r\n");
	assert_string_equal(put(10, 0, 2, "0123456 89 and"), "0123456 89\r\n  and\r\n");
	assert_string_equal(put(10, 5, 5, "one two"), "one\r\n     two\r\n");
	assert_string_equal(put(18, 0, 2, "one two three four"), "one two three four\r\n");
	assert_string_equal(put(200, 0, 2, "one two three four"), "one two three four\r\n");
}

static void test_a_pipe_gets_one_line(void **state)
{
	(void)state;
	assert_string_equal(put(0, 0, 2, "one two three four"), "one two three four\n");
}

static void test_words_are_not_broken(void **state)
{
	(void)state;
	assert_string_equal(put(10, 0, 2, "in /var/lib/a/long/path now"), "in\r\n  /var/lib/a/long/path\r\n  now\r\n");
	assert_string_equal(put(10, 0, 2, "  0123456789abc d"), "  0123456789abc\r\n  d\r\n");
}

static void test_columns_are_characters(void **state)
{
	(void)state;
	assert_string_equal(put(9, 0, 0, "äöü äöü äöü"), "äöü äöü\r\näöü\r\n");
	assert_int_equal(line_width_fit("a…b", 2), 4);
	assert_int_equal(line_width_fit("a…b", 3), 5);
	assert_int_equal(line_width_fit("a…b", LINE_ANY_WIDTH), 5);
	assert_int_equal(line_width_fit("ab", 0), 0);
}

static void test_width_of_what_is_no_terminal(void **state)
{
	struct winsize unknown = { 0 };
	int file = open("/dev/null", O_WRONLY | O_CLOEXEC), reader, writer;

	(void)state;
	assert_int_equal(line_width(file), LINE_ANY_WIDTH);
	close(file);
	assert_int_equal(openpty(&reader, &writer, NULL, NULL, &unknown), 0);
	assert_int_equal(line_width(writer), 80);
	close(reader);
	close(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_message_goes_on_in_further_lines),
		cmocka_unit_test(test_a_pipe_gets_one_line),
		cmocka_unit_test(test_words_are_not_broken),
		cmocka_unit_test(test_columns_are_characters),
		cmocka_unit_test(test_width_of_what_is_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
