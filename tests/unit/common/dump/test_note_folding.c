/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dump/note_folding.h"

#define MORE " (more)"

/* What all texts of one kind become, one per line. */
static const char *folded(const char *const *texts, size_t count)
{
	static char all[8 * NOTE_FORM_ALL_TEXT];
	char text[NOTE_FORM_ALL_TEXT];
	struct note_folding f = { 0 };
	size_t used = 0;

	all[0] = '\0';
	for (size_t i = 0; i < count; i++)
		assert_int_equal(note_folding_add(&f, 1, texts[i]), 0);
	for (size_t i = 0; i < f.count; i++) {
		note_folding_text(&f.list[i], MORE, text);
		used += (size_t)snprintf(all + used, sizeof all - used, "%s\n", text);
	}
	note_folding_done(&f);
	return all;
}

#define FOLDED(...)                                                                                                    \
	folded((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static const char *written(enum note_form form, const char *module, const char *function, const char *why)
{
	static char text[8][NOTE_FORM_TEXT];
	static unsigned next;
	char *to = text[next++ % 8];

	note_form_write(to, form, module, function, why);
	return to;
}

/* Each form is found again with its parts, by whatever names. */
static void test_what_is_written_is_read(void **state)
{
	static const char *const modules[] = { "libc.so.6", "a: b not patched: c", "x has no unwind table", "in" };
	struct note_parts p;

	(void)state;
	for (unsigned form = 0; form < NOTE_FORM_COUNT; form++) {
		const bool has_function = form == NOTE_FORM_ENTRY || form == NOTE_FORM_OWN_CALLS ||
		                          form == NOTE_FORM_NOT_HOOKED;
		for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
			const char *text =
				written((enum note_form)form, modules[i], has_function ? "malloc" : NULL, "why (so)");
			assert_true(note_form_read(text, &p));
			if (i == 0 || i == 3) { /* others hold words of the forms: they may be cut elsewhere */
				assert_int_equal(p.form, form);
				assert_string_equal(p.module, modules[i]);
				assert_string_equal(p.function, has_function ? "malloc" : "");
				assert_string_equal(p.why, "why (so)");
			}
		}
	}
	assert_true(note_form_read(written(NOTE_FORM_NO_ROWS, "a.so", NULL, ""), &p));
	assert_string_equal(p.why, "");
	assert_false(note_form_read("libodd.so is bound otherwise", &p));
	assert_false(note_form_read("", &p));
}

static void test_one_reason_is_one_sentence(void **state)
{
	(void)state;
	assert_string_equal(FOLDED("a.so: malloc not patched: so", "other", "a.so: free not patched: so",
	                           "a.so: free not patched: otherwise", "a.so: calloc not patched: so"),
	                    "calls of malloc, free and calloc from a.so: so\n"
	                    "other\n"
	                    "a.so: free not patched: otherwise\n");
	assert_string_equal(FOLDED("a.so: free not patched: so", "b.so: free not patched: so"),
	                    "calls of free from a.so and b.so: so\n");
	/* Which module calls which function is not said any more. */
	assert_string_equal(FOLDED("a.so: free not patched: so", "b.so: malloc not patched: so"),
	                    "calls of free and malloc from a.so and b.so: so" MORE "\n");
	assert_string_equal(FOLDED("a.so: free not patched: so", "a.so: free not patched: so"),
	                    "a.so: free not patched: so\n");
}

static void test_the_first_are_named_and_all_are_counted(void **state)
{
	char modules[1000][NOTE_FORM_TEXT];
	const char *texts[1000];

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(modules[i], sizeof modules[i], "m%u.so: f%u not patched: so", i, i % 5);
		texts[i] = modules[i];
	}
	assert_string_equal(folded(texts, 1000), "calls of f0, f1, f2 and 2 more functions from m0.so, m1.so, m2.so "
	                                         "and 997 more modules: so" MORE "\n");
	/* One more is no longer than to say so. */
	assert_string_equal(folded(texts, 4),
	                    "calls of f0, f1, f2 and f3 from m0.so, m1.so, m2.so and m3.so: so" MORE "\n");
}

static void test_each_form_is_a_sentence(void **state)
{
	(void)state;
	assert_string_equal(FOLDED("a.so has no unwind table: stacks through it may end early",
	                           "b.so has no unwind table: stacks through it may end early",
	                           "c.so has no unwind table: too large: stacks through it may end early"),
	                    "a.so and b.so have no unwind table: stacks through them may end early\n"
	                    "c.so has no unwind table: too large: stacks through it may end early\n");
	assert_string_equal(FOLDED(written(NOTE_FORM_NOT_HOOKED, "a.so", "_ZnwmSt11align_val_t", "so"),
	                           written(NOTE_FORM_NOT_HOOKED, "a.so", "_ZnamSt11align_val_t", "so")),
	                    "operator new and operator new[] in a.so are not hooked (so): their calls are not seen\n");
	assert_string_equal(FOLDED(written(NOTE_FORM_OWN_CALLS, "a.so", "malloc", "_Znwm"),
	                           written(NOTE_FORM_OWN_CALLS, "b.so", "malloc", "_Znwm")),
	                    "own calls of malloc by a.so and b.so are not recorded, because their _Znwm makes them "
	                    "too\n");
	assert_string_equal(
		FOLDED(written(NOTE_FORM_ENTRIES, "a.so", NULL, "so"), written(NOTE_FORM_ENTRIES, "b.so", NULL, "so"),
	               written(NOTE_FORM_UNREAD, "c.so", NULL, "so"), written(NOTE_FORM_UNREAD, "d.so", NULL, "so")),
		"GOT entries of a.so and b.so are not patched: so\n"
		"c.so and d.so cannot be read: so\n");
}

/* Texts of a dump are anything. */
static void test_long_and_odd_texts(void **state)
{
	char names[NOTE_FORM_TEXT + 100], text[NOTE_FORM_TEXT];
	char lines[4][NOTE_FORM_TEXT + 100];
	const char *list[4];

	(void)state;
	memset(names, 'n', sizeof names - 1);
	names[sizeof names - 1] = '\0';
	note_form_write(text, NOTE_FORM_ENTRY, names, names, names);
	assert_int_equal(strlen(text), NOTE_FORM_TEXT - 1);
	note_form_write(text, NOTE_FORM_ENTRY, "a\033[2J.so", "malloc", "line\nbreak");
	assert_string_equal(text, "a?[2J.so: malloc not patched: line?break");
	for (unsigned i = 0; i < 4; i++) {
		snprintf(lines[i], sizeof lines[i], "%u%.390s: f not patched: so", i, names);
		list[i] = lines[i];
	}
	assert_true(strlen(folded(list, 4)) > 4 * 390);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_one_reason_is_one_sentence),
		cmocka_unit_test(test_the_first_are_named_and_all_are_counted),
		cmocka_unit_test(test_each_form_is_a_sentence),
		cmocka_unit_test(test_long_and_odd_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
