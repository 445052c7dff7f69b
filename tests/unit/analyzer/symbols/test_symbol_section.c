/* SPDX-License-Identifier: MIT */
/* The names of a dump: what is put in comes out, nothing else does, and a report uses them before any file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "dump_builder.h"
#include "report/report.h"
#include "json/report_json.h"
#include "text/report_text.h"
#include "symbols/symbol_section.h"
#include "symbols_walk.h"

#define LEAK DUMP_FRAME(1, 0x555500001234) /* frames of dump_builder_sampler */
#define WRAPPER DUMP_FRAME(2, 0x7f1000000234)
#define OWN_CODE DUMP_FRAME(0, 0x123456789a)

static const struct location deep[] = { { "inner()", "a.h", 7, true },
	                                { "middle<int>()", "a.h", 19, true },
	                                { "outer", "b.c", -1, false } };
static const struct location hostile[] = { { "evil\033]0;title\a</script>\n;\xff", "dir/\x1b[2Jx.c", 3, false } };
static const struct location plain[] = { { "outer", NULL, 0, false } };
static const struct location unknown[] = { { NULL, NULL, 0, false } };

static struct dump_symbols *make(void)
{
	const struct dump_symbol_module first = { .id = 1,
		                                  .source = DUMP_SYMBOL_SOURCE_FILE,
		                                  .flags = DUMP_SYMBOL_LINES };
	const struct dump_symbol_module second = { .id = 2, .source = DUMP_SYMBOL_SOURCE_NONE };
	struct symbol_section b;

	symbol_section_init(&b, 1 << 20);
	symbol_section_place(&b, DUMP_FRAME(1, 0x555500002345), 0, deep, 3);
	symbol_section_place(&b, WRAPPER, DUMP_SYMBOL_ALLOCATOR, plain, 1);
	symbol_section_place(&b, LEAK, 0, hostile, 1);
	symbol_section_place(&b, DUMP_FRAME(1, 0x555500004321), 0, unknown, 1);
	symbol_section_place(&b, OWN_CODE, 0, plain, 1);
	symbol_section_module(&b, &first, NULL);
	symbol_section_module(&b, &second, "the file was deleted");
	struct dump_symbols *s = symbol_section_build(&b);
	symbol_section_done(&b);
	assert_non_null(s);
	return s;
}

static void test_build_keeps_what_was_added(void **state)
{
	struct dump_symbols *s = make();
	const struct dump_symbol_place *p = dump_symbols_places(s);
	const struct dump_symbol_location *l = dump_symbols_locations(s);

	(void)state;
	assert_true(symbols_walk(s, s->bytes));
	assert_int_equal(s->place_count, 5);
	assert_int_equal(s->flags, 0);
	assert_true(p[0].frame == OWN_CODE && p[1].frame == LEAK && p[4].frame == WRAPPER);
	assert_int_equal(p[4].flags, DUMP_SYMBOL_ALLOCATOR);
	assert_int_equal(p[2].count, 3);
	l += p[2].first;
	assert_string_equal(dump_symbols_string(s, l[1].function), "middle<int>()");
	assert_int_equal(l[0].file, l[1].file); /* each string is there once */
	assert_int_equal(l[1].line, 19);
	assert_int_equal(l[2].line, 0);
	assert_string_equal(dump_symbols_string(s, dump_symbols_modules(s)[1].reason), "the file was deleted");
	free(s);
}

/* What has no room is left out, and that is said; what was added before is whole. */
static void test_build_is_bounded(void **state)
{
	char name[64];
	bool was_cut = false;

	(void)state;
	for (unsigned count = 0; count < 200; count++) {
		struct symbol_section b;
		const struct location one = { name, "a file", 1, false };
		symbol_section_init(&b, 4096);
		for (unsigned i = 0; i < count; i++) {
			snprintf(name, sizeof name, "function number %u", i);
			symbol_section_place(&b, i * 16, 0, &one, 1);
		}
		struct dump_symbols *s = symbol_section_build(&b);
		assert_non_null(s);
		assert_true(s->bytes <= 4096 && symbols_walk(s, s->bytes));
		assert_true((s->flags & DUMP_SYMBOLS_CUT) == (s->place_count < count));
		was_cut = s->flags & DUMP_SYMBOLS_CUT;
		assert_true(was_cut ? s->place_count > 60 : s->place_count == count);
		free(s);
		symbol_section_done(&b);
	}
	assert_true(was_cut);
}

static void test_are_sound_refuses_what_would_lead_outside(void **state)
{
	struct dump_symbols *s = make();
	const size_t bytes = s->bytes;
	struct dump_symbol_place *place = (struct dump_symbol_place *)(void *)(s + 1);
	struct dump_symbol_module *module = (struct dump_symbol_module *)(void *)(place + s->place_count);
	struct dump_symbol_location *location = (struct dump_symbol_location *)(void *)(module + s->module_count);
	char *strings = (char *)(location + s->location_count);

	(void)state;
#define REFUSED(what, value)                                                                                           \
	do {                                                                                                           \
		__typeof__(what) saved = (what);                                                                       \
		(what) = (value);                                                                                      \
		assert_false(dump_symbols_are_sound(s, bytes));                                                        \
		(what) = saved;                                                                                        \
		assert_true(dump_symbols_are_sound(s, bytes));                                                         \
	} while (0)
	REFUSED(s->bytes, bytes + 1);
	REFUSED(s->bytes, UINT64_MAX);
	REFUSED(s->place_count, UINT32_MAX);
	REFUSED(s->module_count, s->module_count + 1);
	REFUSED(s->location_count, s->location_count - 1);
	REFUSED(s->string_bytes, UINT32_MAX);
	REFUSED(strings[s->string_bytes - 1], 'x');
	REFUSED(place[1].frame, place[0].frame);
	REFUSED(place[0].count, 0);
	REFUSED(place[0].count, DUMP_SYMBOLS_DEPTH_MAX + 1);
	REFUSED(place[2].first, s->location_count - 2);
	REFUSED(place[2].first, UINT32_MAX);
	REFUSED(place[1].count, 4); /* those of others, too */
	REFUSED(module[0].id, 65536);
	REFUSED(module[0].source, DUMP_SYMBOL_SOURCE_DEBUG + 1);
	REFUSED(module[1].reason, s->string_bytes);
	REFUSED(location[1].function, s->string_bytes);
	REFUSED(location[1].file, UINT32_MAX - 1);
	REFUSED(location[1].line, -1);
#undef REFUSED
	for (size_t less = 0; less < bytes; less++)
		assert_false(symbols_walk(s, less));
	free(s);
}

/* A name that is shown at each frame of each stack must not be megabytes long. */
static void test_long_names_are_left_out(void **state)
{
	char *name = malloc(DUMP_SYMBOLS_STRING_MAX + 1);
	struct symbol_section b;

	(void)state;
	assert_non_null(name);
	for (size_t less = 0; less < 2; less++) {
		const struct location one = { name, "file", 1, false };
		memset(name, 'x', DUMP_SYMBOLS_STRING_MAX);
		name[DUMP_SYMBOLS_STRING_MAX - less] = 0;
		symbol_section_init(&b, 1 << 20);
		symbol_section_place(&b, 1, 0, &one, 1);
		struct dump_symbols *s = symbol_section_build(&b);
		assert_non_null(s);
		assert_true(symbols_walk(s, s->bytes));
		assert_true((dump_symbols_locations(s)->function == DUMP_SYMBOLS_NONE) == !less);
		if (less) {
			char *strings = (char *)s + s->bytes - s->string_bytes;
			strings[DUMP_SYMBOLS_STRING_MAX - 1] = 'x';
			assert_false(dump_symbols_are_sound(s, s->bytes));
		}
		free(s);
		symbol_section_done(&b);
	}
	free(name);
}

static void test_damage_is_refused_or_harmless(void **state)
{
	struct dump_symbols *s = make();
	const size_t bytes = s->bytes;
	uint8_t *data = (uint8_t *)s;
	size_t sound = 0;

	(void)state;
	for (size_t bit = 0; bit < 8 * bytes; bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		sound += symbols_walk(data, bytes);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_in_range(sound, 1, 8 * bytes - 1);
	free(s);
}

/* Text and JSON of the sampler with these names; to be freed. */
static char *report_of(const struct dump_symbols *s, size_t bytes, const char *debug_path, bool *whole)
{
	const struct report_options options = {
		.confidence = 0.95, .symbols = true, .full_names = true, .search.debug_path = debug_path
	};
	struct dump_builder b;
	struct dump *dump;
	struct report report;
	char *text = NULL;
	size_t length;
	struct err e;

	dump_builder_sampler(&b);
	dump_builder_symbols(&b, s, bytes);
	int fd = dump_builder_fd(&b, b.size);
	assert_int_equal(dump_open_fd(fd, &dump, &e), 0);
	assert_int_equal(report_make(&report, dump, "dump", &options, &e), 0);
	FILE *out = open_memstream(&text, &length);
	assert_non_null(out);
	report_text(&report, "dump", out, (struct text_style){ 0 });
	assert_int_equal(report_json(&report, out), 0);
	fclose(out);
	*whole = dump_complete(dump);
	report_done(&report);
	dump_close(dump);
	close(fd);
	dump_builder_done(&b);
	return text;
}

static void test_report_uses_them_and_needs_no_file(void **state)
{
	struct dump_symbols *s = make();
	bool whole;
	char *text = report_of(s, s->bytes, NULL, &whole);

	(void)state;
	assert_true(whole);
	assert_non_null(strstr(text, "middle<int>()"));
	assert_non_null(strstr(text, "a.h:19"));
	assert_null(strstr(text, "on this machine"));          /* nothing was looked for … */
	assert_non_null(strstr(text, "the file was deleted")); /* … but what the dump says of it is shown */
	assert_null(strstr(text, "+0x234"));                   /* a wrapper in front of the leak */
	assert_non_null(strstr(text, "\"function\":\"outer\""));
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\a'));
	free(text);
	/* Another place to look: /usr/bin/leaky is not there either, so the dump's names are all that there is. */
	text = report_of(s, s->bytes, "/nonexistent", &whole);
	assert_non_null(strstr(text, "middle<int>()"));
	assert_non_null(strstr(text, "a.h:19"));
	free(text);
	free(s);
}

static void test_report_says_that_they_are_damaged(void **state)
{
	struct dump_symbols *s = make();
	bool whole;

	(void)state;
	s->place_count++;
	char *text = report_of(s, s->bytes, NULL, &whole);
	assert_false(whole);
	assert_null(strstr(text, "middle<int>"));
	assert_non_null(strstr(text, "tables of names"));
	free(text);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build_keeps_what_was_added),
		cmocka_unit_test(test_build_is_bounded),
		cmocka_unit_test(test_are_sound_refuses_what_would_lead_outside),
		cmocka_unit_test(test_long_names_are_left_out),
		cmocka_unit_test(test_damage_is_refused_or_harmless),
		cmocka_unit_test(test_report_uses_them_and_needs_no_file),
		cmocka_unit_test(test_report_says_that_they_are_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
