/* SPDX-License-Identifier: MIT */
/* The page of a census: names become text, boxes are as wide as their parts, and whatever the numbers are it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "census/census_page.h"
#include "census_sample.h"

#define ROWS 1000u

struct large {
	struct census_header header;
	struct census_row rows[ROWS];
	char strings[64];
};

/* Regions of the three kinds of malloc's memory, files with a name that would be markup, and types. */
static const struct large *make(void)
{
	static const char strings[] = "\0heap\0arena\0file\0<b>&\"x\0vtable\0shop::Book";
	static struct large l;

	l = (struct large){ .header = census_sample.header };
	l.header.file_bytes = sizeof l;
	l.header.row_count = ROWS;
	l.header.malloc_live = 600;
	l.header.malloc_freed = 150;
	l.header.rows_offset = offsetof(struct large, rows);
	l.header.strings_offset = offsetof(struct large, strings);
	l.header.strings_bytes = sizeof l.strings;
	memcpy(l.strings, strings, sizeof strings);
	l.rows[0] = (struct census_row){ .table = CENSUS_TABLE_REGIONS, .kind = 1, .count = 1, .bytes = 500 };
	l.rows[1] = (struct census_row){ .table = CENSUS_TABLE_REGIONS, .kind = 6, .count = 2, .bytes = 250 };
	l.rows[2] =
		(struct census_row){ .table = CENSUS_TABLE_REGIONS, .kind = 12, .name = 17, .count = 3, .bytes = 250 };
	for (uint32_t i = 3; i < ROWS; i++)
		l.rows[i] = (struct census_row){ .table = CENSUS_TABLE_TYPES, .kind = 25, .name = 32, .bytes = i };
	return &l;
}

static char *page_of(const struct large *l)
{
	static char *text;
	struct census_input c;
	struct err e;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(census_input_parse(&c, l, sizeof *l, &e), 0);
	assert_int_equal(census_page(&c, "x<y>.census", out), 0);
	fclose(out);
	census_input_done(&c);
	return text;
}

static void assert_has(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("no %s in:\n%.3000s", what, text);
}

static void test_boxes_are_as_wide_as_their_parts(void **state)
{
	char *text = page_of(make());

	(void)state;
	assert_has(text, "<rect x=\"0.00\" y=\"24\" width=\"750.00\" height=\"23\""); /* malloc: heap and arena */
	assert_has(text, "<rect x=\"0.00\" y=\"48\" width=\"600.00\" height=\"23\"");
	assert_has(text, "<title>freed, kept 150 B</title>");
	assert_has(text, "<rect x=\"750.00\" y=\"48\" width=\"250.00\" height=\"23\"");
	assert_has(text, "<title>others "); /* of 997 types 40 are shown */
	assert_has(text, "<summary>40 rows</summary>");
	free(text);
}

static void test_names_become_text(void **state)
{
	char *text = page_of(make());

	(void)state;
	assert_has(text, "<title>file: &lt;b&gt;&amp;&quot;x 250 B</title>");
	assert_has(text, "x&lt;y&gt;.census");
	assert_null(strstr(text, "<b>"));
	free(text);
}

/* Sums that no memory has: no width is less than nothing, or more than the picture. */
static void test_hostile_numbers(void **state)
{
	struct large l = *make();

	(void)state;
	for (uint32_t i = 0; i < ROWS; i++)
		l.rows[i].bytes = l.rows[i].count = UINT64_MAX - i % 3;
	l.header.malloc_live = UINT64_MAX;
	l.header.malloc_freed = UINT64_MAX;
	char *text = page_of(&l);
	for (const char *at = text; (at = strstr(at, " width=\"")); at++) {
		const double width = strtod(at + 8, NULL);
		assert_true(width >= 0 && width <= 1000.1);
	}
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
	memset(l.rows, 0, sizeof l.rows);
	text = page_of(&l); /* nothing is there */
	assert_null(strstr(text, "<svg"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boxes_are_as_wide_as_their_parts),
		cmocka_unit_test(test_names_become_text),
		cmocka_unit_test(test_hostile_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
