/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "census/census_growth.h"
#include "census_sample.h"

static int parse(struct census_input *c, const struct census_sample *s, size_t bytes)
{
	struct err e;

	return census_input_parse(c, s, bytes, &e);
}

static void test_census_growth_joins_and_subtracts(void **state)
{
	struct census_input old, new;
	struct census_growth g;
	struct census_sample later = census_sample;
	struct err e;

	(void)state;
	later.rows[0].count = 30;
	later.rows[0].bytes = 3000;
	later.rows[1].name = 19; /* another region */
	later.header.realtime_ns *= 3;
	assert_int_equal(parse(&old, &census_sample, sizeof census_sample), 0);
	assert_int_equal(parse(&new, &later, sizeof later), 0);
	assert_int_equal(census_growth_make(&g, &old, &new, &e), 0);
	assert_int_equal(g.count, 5); /* two regions, one type that was there twice, tables 4 and 5; not table 77 */
	assert_int_equal(g.rows[0].new_bytes, 4096);
	assert_int_equal(g.rows[1].old_bytes, 4096);
	assert_int_equal(g.rows[2].old_count, 15);
	assert_int_equal(g.rows[2].new_bytes, 3500);
	census_growth_done(&g);
	census_input_done(&old);
	census_input_done(&new);
}

/* Who has not asked what nothing points to, or was not told, has not said that it was nothing. */
static void test_what_is_not_known_has_not_grown(void **state)
{
	const struct census_sample *known = &census_sample;
	struct census_sample unknown = census_sample, none = census_sample;
	const struct census_sample *const pairs[][2] = { { known, &unknown }, { &unknown, known }, { &none, known } };
	static const size_t counts[] = { 2, 2, 4 };

	(void)state;
	unknown.rows[4].table = unknown.rows[5].table = 77;
	none.rows[5] = (struct census_row){ .table = CENSUS_TABLE_LOST };
	for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		struct census_input old, new;
		struct census_growth g;
		char text[4096] = "";
		struct err e;
		FILE *out = fmemopen(text, sizeof text, "w");
		assert_non_null(out);
		assert_int_equal(parse(&old, pairs[i][0], sizeof census_sample), 0);
		assert_int_equal(parse(&new, pairs[i][1], sizeof census_sample), 0);
		assert_int_equal(census_growth_make(&g, &old, &new, &e), 0);
		assert_int_equal(g.count, counts[i]);
		census_growth_text(&g, 0, out);
		fclose(out);
		assert_true(i != 0 || strstr(text, "\nnothing points to: not known in the second file.\n"));
		assert_true(i != 1 || strstr(text, "\nlive blocks by holder: not known in the first file.\n"));
		assert_true(i != 2 || !strstr(text, "not known"));
		census_growth_done(&g);
		census_input_done(&old);
		census_input_done(&new);
	}
}

static void test_census_input_refuses_damage(void **state)
{
	struct census_input c;
	struct census_sample s;

	(void)state;
	for (size_t bytes = 0; bytes < sizeof census_sample; bytes++)
		assert_int_equal(parse(&c, &census_sample, bytes), -EBADMSG);
	s = census_sample, s.header.version++;
	assert_int_equal(parse(&c, &s, sizeof s), -EBADMSG);
	s = census_sample, s.header.row_count = UINT32_MAX;
	assert_int_equal(parse(&c, &s, sizeof s), -EBADMSG);
	s = census_sample, s.header.rows_offset = UINT64_MAX - 7;
	assert_int_equal(parse(&c, &s, sizeof s), -EBADMSG);
	s = census_sample, s.header.strings_bytes -= 1, s.strings[sizeof s.strings - 2] = 'x';
	assert_int_equal(parse(&c, &s, sizeof s), -EBADMSG);
	s = census_sample, s.rows[3].name = sizeof s.strings;
	assert_int_equal(parse(&c, &s, sizeof s), -EBADMSG);
	s = census_sample, memset(s.header.command, 'x', sizeof s.header.command);
	assert_int_equal(parse(&c, &s, sizeof s), -EBADMSG);
}

/* Each row has all of one name: shown, it would be rows times its length. */
static void test_census_input_refuses_names_without_measure(void **state)
{
	enum { ROWS = 100, NAME = 1 << 20 };
	const size_t bytes = sizeof(struct census_header) + ROWS * sizeof(struct census_row) + NAME;
	struct census_header *h = calloc(1, bytes);
	struct census_input c;
	struct err e;

	(void)state;
	assert_non_null(h);
	struct census_row *rows = (struct census_row *)(h + 1);
	*h = census_sample.header;
	h->file_bytes = bytes;
	h->row_count = ROWS;
	h->rows_offset = sizeof *h;
	h->strings_offset = bytes - NAME;
	h->strings_bytes = NAME;
	memset((char *)h + bytes - NAME, 'x', NAME - 1);
	for (unsigned i = 0; i < ROWS; i++)
		rows[i] = (struct census_row){ .table = CENSUS_TABLE_TYPES, .kind = NAME - 1 };
	assert_int_equal(census_input_parse(&c, h, bytes, &e), -EBADMSG);
	for (unsigned i = 0; i < ROWS / 2; i++)
		rows[i].name = NAME - 1;
	assert_int_equal(census_input_parse(&c, h, bytes, &e), 0);
	census_input_done(&c);
	free(h);
}

/* Any change of some bytes: it is refused, or shown. */
static void test_census_input_survives_changes(void **state)
{
	uint64_t random = 1;
	unsigned shown = 0;
	FILE *out = fopen("/dev/null", "w");

	(void)state;
	assert_non_null(out);
	for (unsigned round = 0; round < 20000; round++) {
		struct census_sample s = census_sample;
		struct census_input old, new;
		struct census_growth g;
		struct err e;
		for (unsigned i = 0; i < 1 + round % 4; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			((uint8_t *)&s)[(random >> 33) % sizeof s] = (uint8_t)(random >> 20);
		}
		if (parse(&new, &s, sizeof s))
			continue;
		assert_int_equal(parse(&old, &census_sample, sizeof census_sample), 0);
		assert_int_equal(census_growth_make(&g, &old, &new, &e), 0);
		census_growth_text(&g, 5, out);
		census_growth_json(&g, out);
		census_growth_done(&g);
		census_input_done(&old);
		census_input_done(&new);
		shown++;
	}
	fclose(out);
	assert_true(shown > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_census_growth_joins_and_subtracts),
		cmocka_unit_test(test_what_is_not_known_has_not_grown),
		cmocka_unit_test(test_census_input_refuses_damage),
		cmocka_unit_test(test_census_input_refuses_names_without_measure),
		cmocka_unit_test(test_census_input_survives_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
