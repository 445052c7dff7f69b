/* SPDX-License-Identifier: MIT */
/* One catalogue for all who ask: what one of them knows of an allocator the others know, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "catalogue/allocator_names.h"
#include "got/plan_notes.h"

static void test_each_prefix_is_known_to_all(void **state)
{
	const struct known_allocator *known;
	struct allocation_name name;
	char symbol[64];

	(void)state;
	for (size_t i = 0; (known = known_allocator(i)); i++)
		for (unsigned k = 0; k < KNOWN_PREFIXES && known->prefixes[k]; k++) {
			snprintf(symbol, sizeof symbol, "%saligned_alloc", known->prefixes[k]);
			assert_true(allocation_name_read(symbol, &name)); /* it would be hooked */
			assert_int_equal(name.family, known->family);
			assert_true(catalogue_is_allocator_symbol(symbol)); /* and no thread is borrowed in it */
		}
	assert_false(allocation_name_read("xx_aligned_alloc", &name));
	assert_false(catalogue_is_allocator_symbol("xx_aligned_alloc"));
}

static void test_each_malloc_has_its_row(void **state)
{
	const struct known_allocator *known;

	(void)state;
	for (size_t i = 0; (known = known_allocator(i)); i++) {
		assert_true(*known->name);
		for (unsigned k = 0; k < KNOWN_MALLOCS && known->mallocs[k]; k++)
			assert_ptr_equal(known_allocator_with_malloc(known->mallocs[k]), known);
		if (known->family != FAMILY_PLAIN)
			assert_true(*allocator_family_name(known->family));
	}
	assert_null(known_allocator_with_malloc("mallocs"));
	assert_string_equal(allocator_family_name(FAMILY_PLAIN), "");
	assert_string_equal(allocator_family_name(FAMILY_JEMALLOC), "jemalloc");
}

static void test_texts_and_libraries(void **state)
{
	static const uint8_t text[] = "0123<jemalloc>: Error";

	(void)state;
	assert_string_equal(known_allocator_in_text(text, sizeof text)->name, "jemalloc");
	assert_null(known_allocator_in_text(text, 8));
	assert_true(known_allocator_library("libtcmalloc_minimal.so.4"));
	assert_true(known_allocator_library("libtbbmalloc.so.2"));
	assert_false(known_allocator_library("libc.so.6"));
}

static void test_notes_in_words(void **state)
{
	const struct plan_note notes[] = {
		{ .kind = NOTE_CONTAINS, .module = 7, .allocator = known_allocator_with_malloc("mi_malloc") },
		{ .kind = NOTE_UNREADABLE, .module = 7, .why = "its \033[1mheader" },
		{ .kind = NOTE_OWN_CALLS, .module = 7, .hook = HOOK_malloc, .because_of = HOOK_new },
	};
	const struct modules none = { 0 };
	char text[NOTE_FORM_TEXT];

	(void)state;
	assert_string_equal(plan_note_text(&notes[0], &none, text),
	                    "a module contains mimalloc: what it allocates by that is not seen");
	assert_null(strchr(plan_note_text(&notes[1], &none, text), '\033'));
	assert_string_equal(plan_note_text(&notes[2], &none, text),
	                    "a module: its own calls of malloc are not recorded, because its _Znwm makes them too");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_prefix_is_known_to_all),
		cmocka_unit_test(test_each_malloc_has_its_row),
		cmocka_unit_test(test_texts_and_libraries),
		cmocka_unit_test(test_notes_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
