/* SPDX-License-Identifier: MIT */
/* GOT entries and words of CPython are counted and named apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patched_words.h"

static void test_counts_are_of_the_kind_of_the_word(void **state)
{
	struct session_outcome o = { 0 };

	(void)state;
	patched_words_counts(&o, GOT_ESCAPES)->patched += 5;
	patched_words_counts(&o, GOT_ESCAPES | GOT_COUNTS | GOT_PYTHON)->patched++;
	patched_words_counts(&o, GOT_PYTHON)->patched += 8;
	assert_int_equal(o.entries.patched, 5);
	assert_int_equal(o.python.patched, 9);
}

/* The last module has words of CPython alone. */
static void test_planned_words_are_told_apart(void **state)
{
	struct entry_plan entries[] = { { .module = 0 },
		                        { .module = 2 },
		                        { .module = 2, .flags = GOT_PYTHON },
		                        { .module = 2, .flags = GOT_ESCAPES },
		                        { .module = 3, .flags = GOT_PYTHON | GOT_ESCAPES } };
	const struct session s = { .view.plan = { .entries = entries, .entry_count = 5 } };
	size_t modules;

	(void)state;
	assert_int_equal(patched_words_planned(&s, false, &modules), 3);
	assert_int_equal(modules, 2);
	assert_int_equal(patched_words_planned(&s, true, &modules), 2);
	assert_int_equal(modules, 2);
	assert_int_equal(patched_words_planned(&(struct session){ 0 }, false, &modules), 0);
	assert_int_equal(modules, 0);
}

static void says(const struct session *s, const char *attached, const char *restored)
{
	char text[PATCHED_WORDS_TEXT];

	patched_words_attached(s, text);
	assert_string_equal(text, attached);
	patched_words_restored(s, text);
	assert_string_equal(text, restored);
}

static void test_texts_name_words_of_python_only_where_there_are_any(void **state)
{
	struct entry_plan entries[] = { { .module = 1 }, { .module = 1, .flags = GOT_PYTHON } };
	struct session s = { .view.plan = { .entries = entries, .entry_count = 2 },
		             .outcome.entries = { .patched = 6, .restored = 5 } };

	(void)state;
	says(&s, "6 GOT entries in 1 modules", "5 of 6 GOT entries restored");
	s.outcome.python = (struct word_counts){ .patched = 1, .restored = 1 };
	says(&s, "6 GOT entries in 1 modules, 1 word of CPython",
	     "5 of 6 GOT entries and 1 of 1 words of CPython restored");
	s.outcome.python = (struct word_counts){ .patched = UINT32_MAX, .restored = UINT32_MAX };
	s.outcome.entries = s.outcome.python;
	says(&s, "4294967295 GOT entries in 1 modules, 4294967295 words of CPython",
	     "4294967295 of 4294967295 GOT entries and 4294967295 of 4294967295 words of CPython restored");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_are_of_the_kind_of_the_word),
		cmocka_unit_test(test_planned_words_are_told_apart),
		cmocka_unit_test(test_texts_name_words_of_python_only_where_there_are_any),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
