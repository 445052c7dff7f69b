/* SPDX-License-Identifier: MIT */
/* GOT entries and words of CPython are counted and named apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/patched_words.h"

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
	struct entry_plan entries[] = { { .module = 1 }, { .module = 1 } };
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
	s.outcome.entries = s.outcome.python = (struct word_counts){ 0 };
	s.outcome.functions_hooked = 9;
	s.outcome.functions_restored = 8;
	strcpy(s.hooks.text, "glibc 2.36");
	says(&s, "9 functions of glibc 2.36", "8 of 9 functions restored");
	s.outcome.entries = (struct word_counts){ .patched = 6, .restored = 5 };
	says(&s, "9 functions of glibc 2.36, 6 GOT entries in 1 modules",
	     "8 of 9 functions and 5 of 6 GOT entries restored");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts_name_words_of_python_only_where_there_are_any),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
