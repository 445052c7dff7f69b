/* SPDX-License-Identifier: MIT */
/* sys.path of fake interpreters of each release, whole and as a hostile one has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "python/python_containers.h"
#include "python/python_paths.h"
#include "python_proving.h"

#define HERE "/home/me"
#define NOWHERE 0x10u

/* An interpreter's sys: a dict with some keys, and one list. */
struct fake_sys {
	uint8_t *dict, *keys, *entries, *list, *items;
	uint32_t used; /* entries */
	const struct python_dict_entry *layout;
};

static uint8_t *text_of(struct python_fake *f, const char *text)
{
	return python_fake_string(f, text, strlen(text), 1, true);
}

static void put_entry(struct fake_sys *s, uint8_t *key, const uint8_t *value)
{
	uint8_t *entry = s->entries + s->used++ * s->layout->bytes;

	python_fake_put_pointer(entry, s->layout->key, key);
	python_fake_put_pointer(entry, s->layout->value, value);
}

static void make_list(struct python_fake *f, struct fake_sys *s, uint8_t *const *items, uint32_t count)
{
	const struct python_release *r = f->release;

	s->list = python_fake_object(f, PYTHON_LIST, 64);
	s->items = python_fake_new(count * sizeof *items + 8);
	memcpy(s->items, items, count * sizeof *items);
	python_fake_put(s->list, r->list_count, count);
	python_fake_put_pointer(s->list, r->list_items, s->items);
}

/* kind: of the entries, as far as the release has several; with the second one the index has two bytes a slot. */
static void make_sys(struct python_fake *f, struct fake_sys *s, uint8_t *interpreter, unsigned kind,
                     uint8_t *const *items, uint32_t count)
{
	const struct python_release *r = f->release;
	const uint64_t slots = kind ? 256 : 16, index = kind ? 512 : 16;

	*s = (struct fake_sys){ .layout = &r->dict_entries[r->dict_entries[kind].bytes ? kind : 0] };
	s->dict = python_fake_object(f, PYTHON_DICT, 64);
	s->keys = python_fake_new(r->keys_index + index + slots * s->layout->bytes);
	s->entries = s->keys + r->keys_index + index;
	make_list(f, s, items, count);
	python_fake_put_pointer(s->dict, r->dict_keys, s->keys);
	if (r->keys_slots != PYTHON_ABSENT) {
		memcpy(s->keys + r->keys_slots, &slots, sizeof slots);
	} else {
		s->keys[r->keys_index_log2] = kind ? 9 : 4;
		s->keys[r->keys_kind] = (uint8_t)s->layout->kind;
	}
	put_entry(s, text_of(f, "pathological"), s->list);
	put_entry(s, NULL, NULL); /* given up */
	put_entry(s, python_fake_bytes(f, "path", 4), s->list);
	put_entry(s, (uint8_t *)NOWHERE, s->list);
	put_entry(s, text_of(f, "path"), s->list);
	python_fake_put(s->keys, r->keys_entry_count, s->used);
	python_fake_put_pointer(interpreter, r->interpreter_sys, s->dict);
}

static int look(const struct python_fake *f, struct python_paths *p, const char *directory)
{
	struct budget budget;
	struct err e;

	budget_start(&budget, PYTHON_PATHS_BYTES, PYTHON_PATHS_WORK);
	struct python_view view = python_proving_view(f, &budget);
	return python_paths_read(p, &view, directory, &e);
}

static void check_paths(const struct python_fake *f, const char *directory, const char *const *expected)
{
	struct python_paths p = { 0 };
	uint32_t count = 0, bytes = 0;

	assert_int_equal(look(f, &p, directory), 0);
	for (; expected[count]; count++) {
		if (count >= p.count || strcmp(p.list[count], expected[count]) != 0)
			fail_msg("3.%u: entry %u is \"%s\", not \"%s\"", f->release->minor, count,
			         count < p.count ? p.list[count] : "(none)", expected[count]);
		bytes += (uint32_t)strlen(expected[count]) + 1;
	}
	assert_int_equal(p.count, count);
	assert_int_equal(p.bytes, bytes);
	python_paths_done(&p);
}

/* ---- as it is ---- */

static void all_kinds_of_entries(struct python_fake *f)
{
	static const uint16_t surrogate[] = { '/', 0xdce9 };
	static const char long_text[PYTHON_FILE_CHARS + 2] = "/";
	uint8_t *items[] = { text_of(f, ""),
		             text_of(f, "/srv/app"),
		             text_of(f, "lib"),
		             python_fake_bytes(f, "/bytes", 6),
		             text_of(f, "/srv/app"),
		             python_fake_string(f, "/caf\xe9", 5, 1, false),
		             python_fake_string(f, surrogate, 2, 2, false),
		             python_fake_string(f, long_text, PYTHON_FILE_CHARS + 1, 1, true),
		             python_fake_string(f, long_text, 1, 1, true),
		             (uint8_t *)NOWHERE };
	static const char *const all[] = { "",          HERE "/",       "/srv/app",      "lib",
		                           HERE "/lib", "/caf\xc3\xa9", "/\xef\xbf\xbd", "/",
		                           NULL };
	static const char *const plain[] = { "", "/srv/app", "lib", "/caf\xc3\xa9", "/\xef\xbf\xbd", "/", NULL };
	struct fake_sys s;

	for (unsigned kind = 0; kind < 2; kind++) {
		make_sys(f, &s, f->interpreter, kind, items, sizeof items / sizeof items[0]);
		check_paths(f, HERE, all);
		check_paths(f, "", plain);
	}
}

static void test_path_is_read(void **state)
{
	(void)state;
	python_proving_each(all_kinds_of_entries);
}

static void two_interpreters(struct python_fake *f)
{
	const struct python_release *r = f->release;
	uint8_t *first = python_fake_new(1u << 14), *items[] = { text_of(f, "/a"), text_of(f, "/b") };
	static const char *const expected[] = { "/a", "/b", NULL }, *const main_alone[] = { "/a", NULL };
	struct fake_sys own, other;

	make_sys(f, &own, f->interpreter, 0, items, 1);
	make_sys(f, &other, first, 1, items, 2);
	python_fake_put_pointer(f->runtime, r->runtime_interpreters, first);
	python_fake_put_pointer(first, r->interpreter_next, f->interpreter);
	check_paths(f, HERE, expected);
	/* A list that returns to itself, and one that leads nowhere. */
	python_fake_put_pointer(f->interpreter, r->interpreter_next, first);
	check_paths(f, HERE, expected);
	python_fake_put(first, r->interpreter_next, NOWHERE);
	check_paths(f, HERE, expected);
	python_fake_put(first, r->interpreter_sys, NOWHERE);
	check_paths(f, HERE, main_alone);
}

static void test_path_of_each_interpreter(void **state)
{
	(void)state;
	python_proving_each(two_interpreters);
}

/* What is looked at again adds what is new. */
static void looks(struct python_fake *f)
{
	uint8_t *items[] = { text_of(f, "/a"), text_of(f, "/b"), text_of(f, "/c") };
	struct python_paths p = { 0 };
	struct fake_sys s;

	make_sys(f, &s, f->interpreter, 0, items, 2);
	assert_int_equal(look(f, &p, ""), 0);
	assert_int_equal(p.count, 2);
	make_sys(f, &s, f->interpreter, 0, items + 1, 2);
	assert_int_equal(look(f, &p, ""), 0);
	assert_int_equal(p.count, 3);
	assert_string_equal(p.list[2], "/c");
	python_fake_put(f->interpreter, f->release->interpreter_sys, 0);
	assert_int_not_equal(look(f, &p, ""), 0);
	assert_int_equal(p.count, 3);
	python_paths_done(&p);
}

static void test_path_that_changes(void **state)
{
	(void)state;
	python_proving_each(looks);
}

/* ---- as it should not be ---- */

static void refused(const struct python_fake *f, const char *what)
{
	struct python_paths p = { 0 };

	if (look(f, &p, HERE) == 0 || p.count)
		fail_msg("3.%u: %s: %u entries", f->release->minor, what, p.count);
	python_paths_done(&p);
}

/* Damages a word of 8 bytes, or a byte, and mends it. */
static void refused_with(struct python_fake *f, uint8_t *object, uint32_t offset, uint64_t word, size_t bytes,
                         const char *what)
{
	uint8_t before[8];

	memcpy(before, object + offset, bytes);
	memcpy(object + offset, &word, bytes);
	refused(f, what);
	memcpy(object + offset, before, bytes);
}

static void damaged_objects(struct python_fake *f)
{
	const struct python_release *r = f->release;
	const uint32_t type = r->frames.object_type;
	uint8_t *items[] = { text_of(f, "/a") };
	static const char *const expected[] = { "/a", NULL };
	const uint64_t other = (uint64_t)(uintptr_t)f->code_type;
	struct fake_sys s;

	make_sys(f, &s, f->interpreter, 0, items, 1);
	refused_with(f, f->interpreter, r->interpreter_sys, 0, 8, "no sys");
	refused_with(f, s.dict, type, other, 8, "a dict of another type");
	refused_with(f, s.dict, type, NOWHERE, 8, "a dict of no type");
	refused_with(f, s.dict, r->dict_keys, NOWHERE, 8, "keys that are not there");
	refused_with(f, s.dict, r->dict_values, 1, 8, "values elsewhere");
	refused_with(f, s.keys, r->keys_entry_count, PYTHON_DICT_SLOTS_MAX + 1, 8, "too many entries");
	refused_with(f, s.keys, r->keys_entry_count, UINT64_MAX, 8, "less than no entries");
	refused_with(f, s.keys, r->keys_entry_count, 4, 8, "entries before the one");
	if (r->keys_slots != PYTHON_ABSENT) {
		refused_with(f, s.keys, r->keys_slots, 0, 8, "no slots");
		refused_with(f, s.keys, r->keys_slots, 24, 8, "slots that are no power of two");
		refused_with(f, s.keys, r->keys_slots, 1ull << 40, 8, "too many slots");
		refused_with(f, s.keys, r->keys_slots, 256, 8, "a wider index");
	} else {
		refused_with(f, s.keys, r->keys_index_log2, 63, 1, "too large an index");
		refused_with(f, s.keys, r->keys_index_log2, 5, 1, "a larger index");
		refused_with(f, s.keys, r->keys_kind, 2, 1, "a split table");
		refused_with(f, s.keys, r->keys_kind, 255, 1, "no kind of table");
	}
	refused_with(f, s.list, type, other, 8, "a list of another type");
	refused_with(f, s.list, r->list_items, NOWHERE, 8, "items that are not there");
	check_paths(f, HERE, expected);
	/* More items than there are: what is behind them may be anything. */
	struct python_paths p = { 0 };
	python_fake_put(s.list, r->list_count, DUMP_PATHS_MAX);
	assert_int_equal(look(f, &p, HERE), 0);
	assert_string_equal(p.list[0], "/a");
	python_paths_done(&p);
}

static void test_damage_means_no_path(void **state)
{
	(void)state;
	python_proving_each(damaged_objects);
}

static void more_than_fits(struct python_fake *f)
{
	static uint8_t *items[DUMP_PATHS_MAX + 8];
	char text[PYTHON_FILE_CHARS] = "/";
	struct python_paths p = { 0 };
	struct fake_sys s;

	for (unsigned i = 0; i < DUMP_PATHS_MAX + 8; i++) {
		snprintf(text, sizeof text, "/%u", i);
		items[i] = text_of(f, text);
	}
	make_sys(f, &s, f->interpreter, 0, items, DUMP_PATHS_MAX + 8);
	assert_int_equal(look(f, &p, HERE), 0);
	assert_int_equal(p.count, DUMP_PATHS_MAX);
	python_fake_put(s.list, f->release->list_count, UINT64_MAX / 2);
	python_fake_put_pointer(s.items, 0, text_of(f, "/new"));
	assert_int_equal(look(f, &p, HERE), 0);
	assert_int_equal(p.count, DUMP_PATHS_MAX);
	python_paths_done(&p);
}

static void longer_than_fits(struct python_fake *f)
{
	static char text[PYTHON_FILE_CHARS];
	uint8_t *items[] = { NULL };
	struct python_paths p = { 0 };
	struct fake_sys s;

	memset(text, 'x', sizeof text);
	items[0] = python_fake_string(f, text, sizeof text, 1, true);
	make_sys(f, &s, f->interpreter, 0, items, 1);
	for (unsigned i = 0; i < 2 * DUMP_PATHS_BYTES_MAX / PYTHON_FILE_CHARS; i++) {
		uint32_t name = 0x61616161u + i % 16 + (i / 16 << 8 & 0xf00) + (i / 256 << 16);
		memcpy(items[0] + f->release->string_ascii_data, &name, sizeof name);
		assert_int_equal(look(f, &p, ""), 0);
	}
	assert_int_equal(p.bytes / 1001, DUMP_PATHS_BYTES_MAX / 1001);
	assert_true(p.bytes <= DUMP_PATHS_BYTES_MAX);
	python_paths_done(&p);
}

static void test_limits(void **state)
{
	(void)state;
	python_proving_each(more_than_fits);
	python_proving_each(longer_than_fits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path_is_read),
		cmocka_unit_test(test_path_of_each_interpreter),
		cmocka_unit_test(test_path_that_changes),
		cmocka_unit_test(test_damage_means_no_path),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, python_proving_open, python_proving_close);
}
