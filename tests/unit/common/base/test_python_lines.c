/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump/python_lines.h"

#define RANGES_MAX 16

/*
 * def f(a):
 *     x = (a +
 *                     two empty lines
 *          1)
 *     for i in range(x):
 *         if i:
 *             continue
 *         print(i)
 *     return x
 *
 * compiled by four interpreters, and what co_lines() (3.9: dis.findlinestarts()) of each says.
 */
static const struct sample {
	enum dump_lines format;
	int32_t first_line;
	uint32_t code_bytes;
	uint8_t table[96];
	size_t count;
	struct python_line_range ranges[RANGES_MAX]; /* neighbours of one line taken together */
} samples[] = {
	/* 3.9.18 */
	{ DUMP_LINES_LNOTAB,
	  1,
	  40,
	  { 0x00, 0x01, 0x02, 0x02, 0x02, 0xfe, 0x04, 0x03, 0x0c, 0x01, 0x04, 0x01, 0x02, 0x01, 0x0a, 0x01 },
	  16,
	  { { 0, 2, 2 },
	    { 2, 4, 4 },
	    { 4, 8, 2 },
	    { 8, 20, 5 },
	    { 20, 24, 6 },
	    { 24, 26, 7 },
	    { 26, 36, 8 },
	    { 36, 40, 9 } } },
	/* 3.10.13 */
	{ DUMP_LINES_LINETABLE,
	  1,
	  40,
	  { 0x02, 0x01, 0x02, 0x02, 0x04, 0xfe, 0x0c, 0x03, 0x04, 0x01, 0x02, 0x01, 0x0a, 0x01, 0x04, 0x01 },
	  16,
	  { { 0, 2, 2 },
	    { 2, 4, 4 },
	    { 4, 8, 2 },
	    { 8, 20, 5 },
	    { 20, 24, 6 },
	    { 24, 26, 7 },
	    { 26, 36, 8 },
	    { 36, 40, 9 } } },
	/* 3.11.7 */
	{ DUMP_LINES_LOCATIONS,
	  1,
	  88,
	  { 0x80, 0x00, 0xd8, 0x09, 0x0a, 0xe0, 0x09, 0x0a, 0xf1, 0x05, 0x02, 0x0a, 0x0b, 0x80, 0x41, 0xf5, 0x06,
	    0x00, 0x0e, 0x13, 0x90, 0x31, 0x89, 0x58, 0x8c, 0x58, 0xf0, 0x00, 0x03, 0x05, 0x11, 0xf0, 0x00, 0x03,
	    0x05, 0x11, 0x88, 0x01, 0xd8, 0x0b, 0x0c, 0xf0, 0x00, 0x01, 0x09, 0x15, 0xd8, 0x0c, 0x14, 0xdd, 0x08,
	    0x0d, 0x88, 0x61, 0x89, 0x08, 0x8c, 0x08, 0x88, 0x08, 0x88, 0x08, 0xd8, 0x0b, 0x0c, 0x80, 0x48 },
	  67,
	  { { 0, 2, 1 },
	    { 2, 4, 2 },
	    { 4, 6, 4 },
	    { 6, 12, 2 },
	    { 12, 46, 5 },
	    { 46, 50, 6 },
	    { 50, 52, 7 },
	    { 52, 84, 8 },
	    { 84, 88, 9 } } },
	/* 3.13.0 */
	{ DUMP_LINES_LOCATIONS,
	  1,
	  92,
	  { 0x80, 0x00, 0xd8, 0x09, 0x0a, 0xe0, 0x09, 0x0a, 0xf1, 0x05, 0x02, 0x0a, 0x0b, 0x80, 0x41, 0xf4, 0x06,
	    0x00, 0x0e, 0x13, 0x90, 0x31, 0x8e, 0x58, 0x88, 0x01, 0xde, 0x0b, 0x0c, 0xd9, 0x0c, 0x14, 0xdc, 0x08,
	    0x0d, 0x88, 0x61, 0x8e, 0x08, 0xf1, 0x07, 0x00, 0x0e, 0x16, 0xf0, 0x08, 0x00, 0x0c, 0x0d, 0x80, 0x48 },
	  51,
	  { { 0, 2, 1 },
	    { 2, 4, 2 },
	    { 4, 6, 4 },
	    { 6, 12, 2 },
	    { 12, 40, 5 },
	    { 40, 54, 6 },
	    { 54, 58, 7 },
	    { 58, 84, 8 },
	    { 84, 88, 5 },
	    { 88, 92, 9 } } },
};
#define SAMPLES (sizeof samples / sizeof samples[0])

static struct python_line_table table_of(const struct sample *s)
{
	return (struct python_line_table){ s->format, s->first_line, s->code_bytes, s->table, s->count };
}

static void test_find_says_what_the_interpreter_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		struct python_line_table t = table_of(&samples[i]);
		uint32_t end = 0;
		int32_t line;

		for (const struct python_line_range *r = samples[i].ranges; r->end; r++)
			for (end = r->start; end < r->end; end += 2) {
				assert_int_equal(python_lines_find(&t, end, &line), 0);
				assert_int_equal(line, r->line);
			}
		assert_int_equal(end, t.code_bytes);
		assert_int_equal(python_lines_find(&t, t.code_bytes, &line), -1);
	}
}

static void test_find_before_the_first_instruction_is_the_definition(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		struct python_line_table t = table_of(&samples[i]);
		int32_t line;

		assert_int_equal(python_lines_find(&t, -1, &line), 0);
		assert_int_equal(line, t.first_line);
	}
}

static void test_find_knows_instructions_without_a_line(void **state)
{
	static const uint8_t pairs[] = { 2, 1, 4, 0x80, 2, 2 }, entries[] = { 0xe8, 2, 0xf9, 0xe8, 4 };
	struct python_line_table old = { DUMP_LINES_LINETABLE, 10, 8, pairs, sizeof pairs };
	struct python_line_table new = { DUMP_LINES_LOCATIONS, 10, 8, entries, sizeof entries };
	static const int32_t expected[] = { 11, PYTHON_NO_LINE, PYTHON_NO_LINE, 13 };
	int32_t line;

	(void)state;
	for (uint32_t at = 0; at < 8; at += 2) {
		assert_int_equal(python_lines_find(&old, at, &line), 0);
		assert_int_equal(line, expected[at / 2]);
		assert_int_equal(python_lines_find(&new, at, &line), 0);
		assert_int_equal(line, expected[at / 2]);
	}
}

static void test_malformed_tables_are_refused(void **state)
{
	static const struct {
		enum dump_lines format;
		uint8_t bytes[12];
		size_t count;
	} bad[] = {
		{ DUMP_LINES_LNOTAB, { 2 }, 1 },
		{ DUMP_LINES_LINETABLE, { 2, 1, 2 }, 3 },
		{ DUMP_LINES_LINETABLE, { 255, 1 }, 2 },           /* beyond the code */
		{ DUMP_LINES_LOCATIONS, { 0x02 }, 1 },             /* no first byte */
		{ DUMP_LINES_LOCATIONS, { 0xe8 }, 1 },             /* no number */
		{ DUMP_LINES_LOCATIONS, { 0xe8, 0x7f, 0x80 }, 3 }, /* a number that is cut */
		{ DUMP_LINES_LOCATIONS, { 0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 1 }, 9 }, /* without end */
		{ DUMP_LINES_LOCATIONS, { 0xe8, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f }, 7 }, /* beyond all lines */
		{ DUMP_LINES_LOCATIONS, { 0x87, 0x87, 0x87 }, 3 },                         /* beyond the code */
	};
	int32_t line;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct python_line_table t = { bad[i].format, 1, 32, bad[i].bytes, bad[i].count };
		assert_int_equal(python_lines_find(&t, 0, &line), -1);
	}
}

/* Whatever the bytes are, the ranges lie in the code, one after the other, and end. */
static void test_ranges_of_noise_stay_in_the_code(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 20000; round++) {
		size_t count = (size_t)rand() % 40;
		uint8_t *bytes = malloc(count ? count : 1); /* exact, for the sanitizer */
		struct python_line_table t = { (enum dump_lines)(1 + rand() % 3), rand(),
			                       (uint32_t)(rand() % 300) & ~1u, bytes, count };
		struct python_line_cursor c;
		struct python_line_range range;
		uint32_t end = 0;
		size_t steps = 0;

		for (size_t i = 0; i < count; i++)
			bytes[i] = (uint8_t)(rand() >> 8);
		for (python_lines_start(&c, &t); python_lines_next(&c, &range); end = range.end, steps++)
			assert_true(range.start == end && range.end > end && range.end <= t.code_bytes);
		assert_true(steps <= count + 1);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find_says_what_the_interpreter_says),
		cmocka_unit_test(test_find_before_the_first_instruction_is_the_definition),
		cmocka_unit_test(test_find_knows_instructions_without_a_line),
		cmocka_unit_test(test_malformed_tables_are_refused),
		cmocka_unit_test(test_ranges_of_noise_stay_in_the_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
