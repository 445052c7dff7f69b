/* SPDX-License-Identifier: MIT */
/* The file of cached symbols: what is put in comes out, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "source_lines.h"
#include "symbol_file_walk.h"

static const struct location deep[] = { { "inner()", "a.h", 7, true },
	                                { "middle<int>()", "a.h", 19, true },
	                                { "outer", "b.c", -1, false } };
static const struct location plain[] = { { "outer", NULL, 0, false } };
static const struct location unknown[] = { { NULL, NULL, 0, false } };
static struct symbol_range range_list[] = { { 16, 32 }, { 64, 65 } };
static const struct symbol_ranges ranges = { range_list, 2, true };
static const struct symbol_ranges no_ranges;
static char alt_path[] = "/usr/lib/debug/.dwz/shared.debug";
static const struct image_alt alt = { alt_path, 77 };
static const struct image_alt no_alt;

static struct symbol_file *make(size_t *bytes)
{
	struct symbol_file_builder b;

	symbol_file_builder_init(&b, 1 << 20);
	symbol_file_add(&b, 0x2000, true, deep, 3);
	symbol_file_add(&b, 0xffffffffffff, false, plain, 1);
	symbol_file_add(&b, 0, true, unknown, 1);
	symbol_file_add(&b, 0x1000, true, &deep[1], 2);
	struct symbol_file *f = symbol_file_build(&b, &ranges, &alt, bytes);
	symbol_file_builder_done(&b);
	assert_non_null(f);
	return f;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void expect(const struct symbol_file *f, uint64_t offset, bool lines, const struct location *want, size_t count)
{
	const struct symbol_place *place = symbol_file_find(f, offset);

	assert_non_null(place);
	assert_int_equal(place->count, count);
	struct location *list = symbol_file_locations(f, place, lines);
	assert_non_null(list);
	for (size_t i = 0; i < count; i++) {
		assert_true(same(list[i].function, want[i].function));
		assert_true(same(list[i].file, lines ? want[i].file : NULL));
		assert_int_equal(list[i].line, lines ? want[i].line : 0);
		assert_int_equal(list[i].inlined, i + 1 < count);
	}
	free(list);
}

static void test_build_keeps_what_was_added(void **state)
{
	size_t bytes;
	struct symbol_file *f = make(&bytes);

	(void)state;
	assert_true(symbol_file_is_sound(f, bytes));
	assert_true(symbol_file_walk(f, bytes));
	expect(f, 0x2000, true, deep, 3);
	expect(f, 0x2000, false, deep, 3);
	expect(f, 0x1000, true, &deep[1], 2);
	expect(f, 0xffffffffffff, true, plain, 1);
	expect(f, 0, true, unknown, 1);
	assert_null(symbol_file_find(f, 1));
	assert_null(symbol_file_find(f, 0x1fff));
	assert_null(symbol_file_find(f, UINT64_MAX));
	assert_true(symbol_file_find(f, 0x2000)->flags & SYMBOL_PLACE_LINES);
	assert_false(symbol_file_find(f, 0xffffffffffff)->flags & SYMBOL_PLACE_LINES);
	assert_int_equal(f->range_count, 2);
	assert_memory_equal(symbol_file_ranges(f), range_list, sizeof range_list);
	assert_true(f->flags & SYMBOL_FILE_RANGES);
	assert_string_equal(symbol_file_string(f, f->alt_path), alt_path);
	assert_int_equal(f->alt_identity, 77);
	/* inner(), middle<int>(), outer, a.h, b.c and the path are there once. */
	assert_int_equal(f->string_bytes, 8 + 14 + 6 + 4 + 4 + sizeof alt_path);
	free(f);
}

static void test_build_of_nothing_is_sound(void **state)
{
	struct symbol_file_builder b;
	size_t bytes;

	(void)state;
	symbol_file_builder_init(&b, 4096);
	struct symbol_file *f = symbol_file_build(&b, &no_ranges, &no_alt, &bytes);
	assert_non_null(f);
	assert_true(symbol_file_walk(f, bytes));
	assert_null(symbol_file_string(f, f->alt_path));
	assert_null(symbol_file_find(f, 0));
	assert_false(f->flags & SYMBOL_FILE_RANGES);
	symbol_file_builder_done(&b);
	free(f);
}

static void test_build_is_bounded(void **state)
{
	char name[64];
	size_t bytes;
	bool refused = false;

	(void)state;
	for (unsigned count = 0; count < 200; count++) {
		struct symbol_file_builder b;
		const struct location one = { name, "a file", 1, false };
		symbol_file_builder_init(&b, 4096);
		for (unsigned i = 0; i < count; i++) {
			snprintf(name, sizeof name, "function number %u", i);
			symbol_file_add(&b, i * 16, true, &one, 1);
		}
		struct symbol_file *f = symbol_file_build(&b, &ranges, &alt, &bytes);
		assert_true(!f || (!refused && bytes <= 4096));
		refused = !f;
		assert_true(f || count > 60);
		free(f);
		symbol_file_builder_done(&b);
	}
	assert_true(refused);
}

static void test_is_sound_refuses_what_would_lead_outside(void **state)
{
	size_t bytes;
	struct symbol_file *f = make(&bytes);
	struct symbol_range *range = (struct symbol_range *)(void *)(f + 1);
	struct symbol_place *place = (struct symbol_place *)(void *)(range + f->range_count);
	struct symbol_frame *frame = (struct symbol_frame *)(void *)(place + f->place_count);
	char *strings = (char *)(frame + f->frame_count);

	(void)state;
#define REFUSED(what, value)                                                                                           \
	do {                                                                                                           \
		__typeof__(what) saved = (what);                                                                       \
		(what) = (value);                                                                                      \
		assert_false(symbol_file_is_sound(f, bytes));                                                          \
		(what) = saved;                                                                                        \
		assert_true(symbol_file_is_sound(f, bytes));                                                           \
	} while (0)
	REFUSED(f->range_count, f->range_count + 1);
	REFUSED(f->place_count, UINT32_MAX);
	REFUSED(f->frame_count, f->frame_count - 1);
	REFUSED(f->string_bytes, UINT32_MAX);
	REFUSED(f->alt_path, f->string_bytes);
	REFUSED(strings[f->string_bytes - 1], 'x');
	REFUSED(range[0].end, range[0].start);
	REFUSED(range[1].start, range[0].end - 1);
	REFUSED(place[1].offset, place[0].offset);
	REFUSED(place[1].offset, place[2].offset + 1);
	REFUSED(place[3].offset, 1ull << 48);
	REFUSED(place[0].count, 0);
	REFUSED(place[0].count, SOURCE_DEPTH_MAX + 1);
	REFUSED(place[2].first, f->frame_count - 2);
	REFUSED(place[2].first, UINT32_MAX);
	REFUSED(frame[1].function, f->string_bytes);
	REFUSED(frame[1].file, UINT32_MAX - 1);
#undef REFUSED
	for (size_t less = 0; less < bytes; less++)
		assert_false(symbol_file_walk(f, less));
	free(f);
}

/* Bits that the checksum would find: what is still sound may say something else, but nothing outside is read. */
static void test_damage_is_refused_or_harmless(void **state)
{
	size_t bytes, sound = 0;
	struct symbol_file *f = make(&bytes);
	uint8_t *data = (uint8_t *)f;

	(void)state;
	for (size_t bit = 0; bit < 8 * bytes; bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		sound += symbol_file_walk(data, bytes);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_in_range(sound, 1, 8 * bytes - 1);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build_keeps_what_was_added),
		cmocka_unit_test(test_build_of_nothing_is_sound),
		cmocka_unit_test(test_build_is_bounded),
		cmocka_unit_test(test_is_sound_refuses_what_would_lead_outside),
		cmocka_unit_test(test_damage_is_refused_or_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
