/* SPDX-License-Identifier: MIT */
/* The tables of memattach and memanalyze: what holds for both, and what holds between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memanalyze_options.h"
#include "cli/memattach_options.h"

static const struct option_table *const tables[] = { &memattach_options, &memanalyze_options };

#define TABLE_COUNT (sizeof tables / sizeof tables[0])

static void test_rows_are_complete(void **state)
{
	(void)state;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		size_t count = 0;
		assert_non_null(tables[i]->rows[0].group);
		for (const struct option_row *row = tables[i]->rows; !option_row_is_end(row); row++, count++) {
			if (row->group) {
				assert_null(row->name);
				continue;
			}
			assert_true(row->code > ' ');
			assert_true(row->help && row->help[0] && row->help[strlen(row->help) - 1] != '.');
			assert_true(row->argument || row->value == OPTION_VALUE_TEXT);
			assert_int_equal(row->value == OPTION_VALUE_WORDS, row->words != NULL);
		}
		assert_in_range(count, 10, OPTION_ROWS_MAX);
	}
}

/* Within a program codes and names are unique. */
static void test_rows_are_unique(void **state)
{
	(void)state;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		for (const struct option_row *a = tables[i]->rows; !option_row_is_end(a); a++) {
			for (const struct option_row *b = a + 1; !a->group && !option_row_is_end(b); b++) {
				if (b->group)
					continue;
				assert_int_not_equal(a->code, b->code);
				assert_string_not_equal(a->name, b->name);
			}
		}
	}
}

/* Who has learned a letter in one program can rely on it in the other. */
static void test_a_letter_means_one_thing(void **state)
{
	size_t common = 0;

	(void)state;
	for (const struct option_row *a = memattach_options.rows; !option_row_is_end(a); a++) {
		for (const struct option_row *b = memanalyze_options.rows; !option_row_is_end(b); b++) {
			if (a->group || b->group || a->code >= OPTION_CODE_LONG || a->code != b->code)
				continue;
			assert_string_equal(a->name, b->name);
			assert_int_equal(!a->argument, !b->argument);
			common++;
		}
	}
	assert_true(common >= 3);
}

static void test_help_has_80_columns_and_examples(void **state)
{
	(void)state;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		char *text = NULL;
		size_t length, examples = 0;
		FILE *out = open_memstream(&text, &length);

		assert_non_null(out);
		option_table_help(tables[i], out);
		fclose(out);
		char *after = strstr(text, "\nExamples:\n");
		assert_non_null(after);
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			assert_in_range(strlen(line), 1, 80);
			if (line > after && !strncmp(line, "  mem", 5))
				examples++;
		}
		assert_int_equal(examples, 3);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_complete),
		cmocka_unit_test(test_rows_are_unique),
		cmocka_unit_test(test_a_letter_means_one_thing),
		cmocka_unit_test(test_help_has_80_columns_and_examples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
