/* SPDX-License-Identifier: MIT */
/* Python frames in stacks, and the code objects that they refer to, over the fake interpreters of memattach's own
 * tests. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/machine.h"
#include "python/code_record.h"
#include "payload.h"
#include "python/python_frames.h"
#include "python_inside.h"
#include "tables/regions.h"
#include "tables_fixture.h"

#define NATIVE 0x1234567 /* hash of a native stack */

static struct code_object read_code(const struct python_fake *f, unsigned frame)
{
	const struct python_walked walked = { .code = (uint64_t)(uintptr_t)f->codes[frame], .bytes = 8, .offset = 4 };
	struct python_layout l;
	struct code_object code;

	python_inside_layout(f, &l);
	code_object_read(&code, &l, &walked);
	return code;
}

static struct unwind_result add(const struct python_fake *f)
{
	struct unwind_result r = { .count = 2, .hash = NATIVE };

	python_inside_layout(f, &payload.python);
	python_frames_add(arch_thread_pointer(), &r);
	return r;
}

/* ---- which code is the same ---- */

static void put_name(const struct python_fake *f, const uint8_t *name)
{
	const struct python_release *r = f->release;

	python_fake_put_pointer(f->codes[0], r->code_qualname != PYTHON_ABSENT ? r->code_qualname : r->code_name, name);
}

static void differs(const struct python_fake *f, uint64_t before, const char *what)
{
	if (read_code(f, 0).hash == before)
		fail_msg("3.%u: taken for the same in spite of %s", f->release->minor, what);
}

static void reused(struct python_fake *f)
{
	const struct python_release *r = f->release;
	uint64_t before = read_code(f, 0).hash, line = 11;
	uint8_t *characters = f->file + r->string_ascii_data;

	assert_true(before);
	assert_int_equal(read_code(f, 0).hash, before);
	assert_int_not_equal(read_code(f, 1).hash, before); /* alike, but for the address */
	characters[7]++;
	differs(f, before, "another file at the same address");
	characters[7]--;
	f->name[r->string_ascii_data]++;
	differs(f, before, "another name at the same address");
	f->name[r->string_ascii_data]--;
	memcpy(f->codes[0] + r->code_first_line, &line, 4);
	differs(f, before, "another first line");
	line = 10;
	memcpy(f->codes[0] + r->code_first_line, &line, 4);
	f->lines[r->frames.bytes_data + 1]++;
	differs(f, before, "another table of lines");
	f->lines[r->frames.bytes_data + 1]--;
	put_name(f, python_fake_string(f, "h\0a\0n\0d\0l\0e\0", 6, 2, false));
	differs(f, before, "wider characters");
	put_name(f, f->name);
	assert_int_equal(read_code(f, 0).hash, before);
}

static void test_code_at_a_reused_address_is_another(void **state)
{
	(void)state;
	python_inside_each(reused);
}

static uint64_t hash_at(const struct python_fake *f, uint8_t *place, int line)
{
	const struct python_walked walked = { .code = (uint64_t)(uintptr_t)place, .bytes = 8, .offset = 4 };
	struct python_layout l;
	struct code_object code;

	memcpy(place, f->codes[0], f->release->code_bytes);
	memcpy(place + f->release->code_first_line, &line, sizeof line);
	python_inside_layout(f, &l);
	code_object_read(&code, &l, &walked);
	return code.hash;
}

#define PLACES 4096u
#define PLACE_BYTES 1024u
#define APART 64u /* places: 0x10000 bytes */

/* Objects that differ in two places: one must not cancel out the other, as an address a line, or a part of a name. */
static void alike(struct python_fake *f)
{
	uint8_t *names[] = { python_fake_string(f, "f_53", 4, 1, true), python_fake_string(f, "f_63", 4, 1, true) };
	uint8_t *twice[] = { python_fake_string(f, "in53_to_in53_to_", 16, 1, true),
		             python_fake_string(f, "in63_to_in63_to_", 16, 1, true) };
	uint8_t *places = aligned_alloc(2 * PLACE_BYTES, PLACES * PLACE_BYTES);
	uint64_t *hashes = calloc(PLACES, sizeof *hashes);

	assert_true(places && hashes);
	for (unsigned i = 0; i < PLACES; i++) {
		put_name(f, names[0]);
		hashes[i] = hash_at(f, places + i * PLACE_BYTES, 10);
		if (i % 2)
			assert_int_not_equal(hash_at(f, places + (i - 1) * PLACE_BYTES, 10 ^ (int)PLACE_BYTES),
			                     hashes[i]);
		put_name(f, names[1]);
		if (i >= APART)
			assert_int_not_equal(hash_at(f, places + i * PLACE_BYTES, 10), hashes[i - APART]);
		put_name(f, twice[0]);
		uint64_t before = hash_at(f, places + i * PLACE_BYTES, 10);
		put_name(f, twice[1]);
		assert_int_not_equal(hash_at(f, places + i * PLACE_BYTES, 10), before);
	}
	free(hashes);
	free(places);
	put_name(f, f->name);
}

static void test_code_that_differs_twice_is_another(void **state)
{
	(void)state;
	python_inside_each(alike);
}

/* Nothing that two objects differ in may be lost where another part is empty. */
static void empty(struct python_fake *f)
{
	uint8_t *none = python_fake_bytes(f, "", 0), *nameless = python_fake_string(f, "", 0, 1, true);

	for (unsigned i = 0; i < 2; i++)
		python_fake_put_pointer(f->codes[i], f->release->code_lines, none);
	assert_int_not_equal(read_code(f, 0).hash, read_code(f, 1).hash);
	put_name(f, nameless);
	assert_int_not_equal(read_code(f, 0).hash, read_code(f, 1).hash);
}

static void test_code_without_lines_or_name_differs(void **state)
{
	(void)state;
	python_inside_each(empty);
}

static void long_table(struct python_fake *f)
{
	static uint8_t table[DUMP_CODE_TABLE_MAX + 8];
	uint8_t *object;
	uint64_t before;

	object = python_fake_bytes(f, table, 500);
	python_fake_put_pointer(f->codes[0], f->release->code_lines, object);
	before = read_code(f, 0).hash;
	for (unsigned i = 0; i < 500; i += 499) {
		object[f->release->frames.bytes_data + i]++;
		differs(f, before, "another end of its table");
		object[f->release->frames.bytes_data + i]--;
	}
	python_fake_put(object, f->release->frames.bytes_size, 501);
	differs(f, before, "another length of its table");
}

static void test_code_with_a_long_table_differs_at_its_ends(void **state)
{
	(void)state;
	python_inside_each(long_table);
}

/* ---- what is not as it should be ---- */

static void strange(struct python_fake *f)
{
	const struct python_release *r = f->release;
	struct code_object code;

	put_name(f, f->lines);
	code = read_code(f, 0);
	assert_true(code.name.cut && !code.name.bytes && !code.file.cut);
	put_name(f, (const uint8_t *)0x8);
	assert_true(read_code(f, 0).name.cut);
	put_name(f, f->name);
	python_fake_put(f->name, r->string_length, 1ull << 60);
	code = read_code(f, 0);
	assert_true(code.name.cut && !code.name.bytes);
	python_fake_put(f->name, r->string_length, 100000);
	code = read_code(f, 0);
	assert_true(code.name.cut && code.name.bytes == DUMP_CODE_NAME_MAX);
	python_fake_put(f->name, r->string_length, 6);
	f->name[r->string_state] ^= (uint8_t)r->string_compact;
	assert_true(read_code(f, 0).name.cut);
	f->name[r->string_state] ^= (uint8_t)r->string_compact;
	python_fake_put_pointer(f->codes[0], r->code_lines, f->name);
	code = read_code(f, 0);
	assert_true(code.table_cut && !code.table_bytes);
	python_fake_put_pointer(f->codes[0], r->code_lines, f->lines);
	python_fake_put(f->lines, r->frames.bytes_size, 1ull << 40);
	code = read_code(f, 0);
	assert_true(code.table_cut && !code.table_bytes);
}

static void test_code_copies_only_what_is_a_str_or_bytes(void **state)
{
	(void)state;
	python_inside_each(strange);
}

/* ---- the stacks ---- */

static void added(struct python_fake *f)
{
	struct unwind_result r = add(f), again = add(f);

	assert_int_equal(r.flags, DUMP_STACK_PYTHON_FLAGS(FAKE_FRAMES));
	assert_true(r.count == 2 && r.hash && r.hash != NATIVE && again.hash == r.hash);
	python_fake_put_instruction(f, 2, 6);
	assert_true(add(f).hash != r.hash);
	python_fake_put_instruction(f, 2, 4);
	assert_int_equal(add(f).hash, r.hash);
	python_fake_put_code(f, 2, f->name);
	assert_int_equal(add(f).flags, DUMP_STACK_PYTHON_FLAGS(2) | DUMP_STACK_PYTHON_TRUNCATED);
	python_fake_put_pointer(f->frames[1], f->release->frames.frame_previous, f->frames[0]);
	assert_int_equal(add(f).flags, DUMP_STACK_PYTHON_FLAGS(DUMP_PYTHON_FRAMES_MAX) | DUMP_STACK_PYTHON_DEEP);
	python_fake_put(f->runtime, f->release->runtime_finalizing, 0x1000);
	r = add(f);
	assert_true(r.flags == 0 && r.hash == NATIVE);
}

static void test_frames_are_added_to_hash_and_flags(void **state)
{
	(void)state;
	python_inside_each(added);
}

/* It has interrupted the evaluator, which has left something else where the current frame will be. */
static void interrupted(struct python_fake *f)
{
	const struct python_frame_layout *l = &f->release->frames;
	uint8_t *holder = f->cframe ? f->cframe : f->state;
	uint32_t offset = f->cframe ? l->cframe_frame : l->state_frame;
	struct unwind_result r = { .count = 2, .hash = NATIVE, .signal_frames = 1 };

	python_fake_put(holder, offset, 0x10000); /* nothing is mapped there */
	python_inside_layout(f, &payload.python);
	python_frames_add(arch_thread_pointer(), &r);
	assert_true(r.flags == DUMP_STACK_PYTHON_TRUNCATED && r.hash && r.hash != NATIVE);
	python_fake_put(holder, offset, 0);
	r = (struct unwind_result){ .count = 2, .hash = NATIVE, .signal_frames = 1 };
	python_frames_add(arch_thread_pointer(), &r);
	assert_true(r.flags == 0 && r.hash == NATIVE);
}

static void test_signal_handlers_read_no_frames(void **state)
{
	(void)state;
	python_inside_each(interrupted);
}

static void of_several_interpreters(struct python_fake *f)
{
	const struct python_release *r = f->release;
	const bool inner = r->minor <= 11;
	uint64_t python[DUMP_PYTHON_FRAMES_MAX], alone = add(f).hash;
	struct unwind_result found;

	assert_false(add(f).flags & (DUMP_STACK_PYTHON_INNER | DUMP_STACK_PYTHON_OUTER));
	if (inner)
		python_fake_put(f->runtime, r->runtime_current, 0x10000);
	else
		python_fake_put(f->state, r->state_interpreter, 0x10000);
	found = add(f);
	assert_int_equal(found.flags, (inner ? DUMP_STACK_PYTHON_INNER : DUMP_STACK_PYTHON_OUTER) |
	                                      DUMP_STACK_PYTHON_FLAGS(FAKE_FRAMES));
	assert_int_not_equal(found.hash, alone);
	if (inner) /* another thread has given the lock back meanwhile */
		python_fake_put(f->runtime, r->runtime_current, 0);
	assert_true(python_frames_store(arch_thread_pointer(), NATIVE, &found, python));
}

static void test_frames_of_another_interpreter_are_said_to_be_missing(void **state)
{
	(void)state;
	fixture_regions(&fixture);
	regions_refresh();
	python_inside_each(of_several_interpreters);
}

static const struct dump_code *code_at(uint32_t reference)
{
	return (const void *)fixture_stack(&fixture, reference);
}

static void stored(struct python_fake *f)
{
	struct unwind_result r = add(f), other;
	uint64_t python[DUMP_PYTHON_FRAMES_MAX];

	assert_true(python_frames_store(arch_thread_pointer(), NATIVE, &r, python));
	for (unsigned i = 0; i < FAKE_FRAMES; i++) {
		const struct dump_code *code = code_at(DUMP_PYTHON_REFERENCE(python[i]));

		assert_int_equal(DUMP_PYTHON_OFFSET(python[i]), 4);
		assert_int_equal(DUMP_PYTHON_ENTRY(python[i]), f->release->minor <= 10);
		assert_int_equal(code->flags, DUMP_STACK_CODE);
		assert_int_equal(code->address, (uintptr_t)f->codes[i]);
		assert_true(code->code_bytes == 8 && code->first_line == 10 && code->lines == f->release->lines);
		assert_true(code->name_bytes == 6 && code->name_width == 1 && code->file_bytes == 8);
		assert_int_equal(code->data_bytes, 14 + code->table_bytes);
		assert_memory_equal(code->data, "handleviews.py", 14);
		assert_memory_equal(code->data + 14, f->lines + f->release->frames.bytes_data, code->table_bytes);
	}
	other = r;
	other.hash++;
	assert_false(python_frames_store(arch_thread_pointer(), NATIVE, &other, python));
	other = r;
	other.flags = DUMP_STACK_PYTHON_FLAGS(FAKE_FRAMES - 1);
	assert_false(python_frames_store(arch_thread_pointer(), NATIVE, &other, python));
}

static void test_frames_are_stored_with_their_code(void **state)
{
	(void)state;
	fixture_regions(&fixture);
	regions_refresh();
	python_inside_each(stored);
}

/* Of one frame more than once, and by one who comes later: one record. */
static void test_code_is_stored_once(void **state)
{
	uint64_t python[DUMP_PYTHON_FRAMES_MAX], again[DUMP_PYTHON_FRAMES_MAX];
	struct unwind_result r;
	struct python_fake f;
	uint32_t count;

	(void)state;
	fixture_regions(&fixture);
	regions_refresh();
	python_fake_make(&f, &python_release_list(&count)[0]);
	r = add(&f);
	assert_true(python_frames_store(arch_thread_pointer(), NATIVE, &r, python));
	assert_true(python_frames_store(arch_thread_pointer(), NATIVE, &r, again));
	assert_memory_equal(python, again, FAKE_FRAMES * sizeof(python[0]));
}

static void test_frames_need_room_for_their_code(void **state)
{
	uint64_t python[DUMP_PYTHON_FRAMES_MAX];
	struct unwind_result r;
	struct python_fake f;
	uint32_t count;

	(void)state;
	python_fake_make(&f, &python_release_list(&count)[0]);
	r = add(&f);
	assert_false(python_frames_store(arch_thread_pointer(), NATIVE, &r, python));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_at_a_reused_address_is_another),
		cmocka_unit_test(test_code_that_differs_twice_is_another),
		cmocka_unit_test(test_code_without_lines_or_name_differs),
		cmocka_unit_test(test_code_with_a_long_table_differs_at_its_ends),
		cmocka_unit_test(test_code_copies_only_what_is_a_str_or_bytes),
		SESSION_TEST(test_frames_are_added_to_hash_and_flags),
		SESSION_TEST(test_signal_handlers_read_no_frames),
		SESSION_TEST(test_frames_of_another_interpreter_are_said_to_be_missing),
		SESSION_TEST(test_frames_are_stored_with_their_code),
		SESSION_TEST(test_code_is_stored_once),
		SESSION_TEST(test_frames_need_room_for_their_code),
	};

	return cmocka_run_group_tests_name("python_frames", tests, NULL, NULL);
}
