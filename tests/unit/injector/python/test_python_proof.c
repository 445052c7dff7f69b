/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "python_proving.h"

/* It must be refused for this reason. */
static void refused(const struct python_fake *f, const char *why)
{
	struct python_proof p;

	python_proving(&p, f);
	if (p.frames_proved || !strstr(p.frames_why, why))
		fail_msg("3.%u: \"%s\" does not say \"%s\"", f->release->minor,
		         p.frames_proved ? "proved" : p.frames_why, why);
	assert_int_equal(p.layout.version, 0);
	python_proof_done(&p);
}

static void right(struct python_fake *f)
{
	const void *table = dlvsym(RTLD_DEFAULT, "__pthread_keys", "GLIBC_PRIVATE");
	struct python_proof p;

	python_proving(&p, f);
	if (!p.frames_proved || !p.key_proved)
		fail_msg("3.%u: %s %s", f->release->minor, p.frames_why, p.key_why);
	assert_int_equal(p.thread_count, 1);
	assert_int_equal(p.frames, FAKE_FRAMES);
	assert_int_equal(p.threads[0].tid, gettid());
	for (unsigned i = 0; i < FAKE_FRAMES; i++) {
		assert_string_equal(p.threads[0].places[i].function, "handle");
		assert_string_equal(p.threads[0].places[i].file, "views.py");
		assert_int_equal(p.threads[0].places[i].line, 11);
	}
	assert_int_equal(p.layout.version, 3u << 24 | f->release->minor << 16 | 0x04f0);
	assert_int_equal(p.layout.code_type, (uintptr_t)f->code_type);
	assert_memory_equal(&p.layout.frames, &f->release->frames, sizeof p.layout.frames);
	assert_int_equal(p.layout.key_address, (uintptr_t)f->runtime + f->release->runtime_key);
	assert_int_equal(p.layout.key_address % 8, 0); /* read at once */
	if (table)                                     /* exported since glibc 2.34 */
		assert_ptr_equal(p.layout.key_table, table);
	assert_int_equal(p.layout.finalizing, (uintptr_t)f->runtime + f->release->runtime_finalizing);
	assert_true((p.layout.frame_type != 0) == (f->release->minor <= 10));
	python_proof_done(&p);
}

static void test_prove_accepts_what_is_right(void **state)
{
	(void)state;
	python_proving_each(right);
}

/* ---- versions ---- */

static void test_refusal_names_builds_that_are_not_known(void **state)
{
	struct python_version v = { .minor = 13, .release = 'f', .flags_known = true, .describes_itself = true };

	(void)state;
	assert_null(python_version_refusal(&v));
	v.debug = true;
	assert_string_equal(python_version_refusal(&v), "it is a debug build");
	v.free_threaded = true;
	assert_string_equal(python_version_refusal(&v), "it is a free-threaded build");
	v.free_threaded = v.debug = v.describes_itself = false;
	assert_non_null(strstr(python_version_refusal(&v), "does not describe itself"));
	v.release = 'c';
	assert_non_null(strstr(python_version_refusal(&v), "before the release"));
	v.minor = 15;
	assert_non_null(strstr(python_version_refusal(&v), "not known"));
	v.minor = 8;
	assert_non_null(strstr(python_version_refusal(&v), "not known"));
	v.minor = 0;
	assert_non_null(strstr(python_version_refusal(&v), "cannot be told"));
}

static void test_prove_refuses_another_self_description(void **state)
{
	struct python_fake f;

	(void)state;
	for (unsigned i = 0; i < PYTHON_SELF_WORDS - 1; i++) {
		const struct python_release *r = python_release_find(14);

		python_fake_make(&f, r);
		if (!r->self[i].at)
			break;
		python_fake_put(f.runtime, r->self[i].at, r->self[i].value + 8);
		refused(&f, "describes itself otherwise");
	}
}

/* ---- lists ---- */

static void endless_states(struct python_fake *f)
{
	python_fake_put_pointer(f->state, f->release->state_next, f->state);
	python_fake_put_pointer(f->state, f->release->state_previous, f->state);
	refused(f, "not one of its interpreter's list");
}

static void foreign_state(struct python_fake *f)
{
	python_fake_put_pointer(f->state, f->release->state_interpreter, f->runtime);
	refused(f, "not one of its interpreter's list");
}

static void endless_interpreters(struct python_fake *f)
{
	python_fake_put_pointer(f->interpreter, f->release->interpreter_threads, NULL);
	python_fake_put_pointer(f->interpreter, f->release->interpreter_next, f->interpreter);
	refused(f, "more than 256 interpreters");
}

static void foreign_main(struct python_fake *f)
{
	python_fake_put_pointer(f->runtime, f->release->runtime_main, f->state);
	refused(f, "main interpreter");
}

static void not_started(struct python_fake *f)
{
	python_fake_put(f->runtime, f->release->runtime_interpreters, 0);
	refused(f, "it has no thread");
}

static void wild_lists(struct python_fake *f)
{
	python_fake_put(f->runtime, f->release->runtime_interpreters, 0xdead0000beef0000);
	refused(f, "cannot read");
}

static void test_prove_ends_at_lists_that_are_wrong(void **state)
{
	(void)state;
	python_proving_each(endless_states);
	python_proving_each(foreign_state);
	python_proving_each(endless_interpreters);
	python_proving_each(foreign_main);
	python_proving_each(not_started);
	python_proving_each(wild_lists);
}

/* ---- frames ---- */

static void cycle(struct python_fake *f)
{
	for (unsigned i = 0; i < FAKE_FRAMES; i++) {
		python_fake_put_pointer(f->frames[FAKE_FRAMES - 1], f->release->frames.frame_previous, f->frames[i]);
		refused(f, "returns to");
	}
}

static void wild_frame(struct python_fake *f)
{
	python_fake_put(f->frames[1], f->release->frames.frame_previous, 0x10);
	refused(f, "cannot read");
}

static void no_code(struct python_fake *f)
{
	python_fake_put_code(f, 1, f->name);
	refused(f, "is not the type code");
}

static void instruction_outside(struct python_fake *f)
{
	static const int32_t offsets[] = { 8, 1 << 20, -16 };

	for (unsigned i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
		python_fake_put_instruction(f, 0, offsets[i]);
		refused(f, "not in its code");
	}
}

static void no_frames(struct python_fake *f)
{
	if (f->cframe)
		python_fake_put(f->cframe, f->release->frames.cframe_frame, 0);
	else
		python_fake_put(f->state, f->release->frames.state_frame, 0);
	refused(f, "no thread runs Python code");
}

static void wild_owner(struct python_fake *f)
{
	if (f->release->frames.frame_owner == PYTHON_ABSENT)
		return;
	f->frames[0][f->release->frames.frame_owner] = 77;
	refused(f, "owner");
}

static void test_prove_ends_at_frames_that_are_wrong(void **state)
{
	(void)state;
	python_proving_each(cycle);
	python_proving_each(wild_frame);
	python_proving_each(no_code);
	python_proving_each(instruction_outside);
	python_proving_each(no_frames);
	python_proving_each(wild_owner);
}

/* Frames that Python does not show either: not begun, and where the evaluator was entered from C. */
static void hidden_frames(struct python_fake *f)
{
	const struct python_frame_layout *l = &f->release->frames;
	struct python_proof p;

	if (l->first_traceable == PYTHON_ABSENT)
		return;
	python_fake_put(f->codes[0], l->first_traceable, 3); /* its instruction is the third: number 2 */
	python_proving(&p, f);
	assert_true(p.frames_proved && p.frames == FAKE_FRAMES - 1);
	python_proof_done(&p);
	f->frames[0][l->frame_owner] = l->owner_generator;
	python_proving(&p, f);
	assert_true(p.frames_proved && p.frames == FAKE_FRAMES);
	python_proof_done(&p);
	if (l->owner_without_code == UINT8_MAX)
		return;
	f->frames[0][l->frame_owner] = l->owner_without_code;
	if (l->instruction == PYTHON_CURRENT) {
		refused(f, "NoneType");
		uint8_t *none = python_fake_new(64);
		python_fake_put_pointer(none, l->object_type, f->none_type);
		python_fake_put_code(f, 0, none);
	}
	python_proving(&p, f);
	if (!p.frames_proved || p.frames != FAKE_FRAMES - 1)
		fail_msg("3.%u: %s, %u frames", f->release->minor, p.frames_why, (unsigned)p.frames);
	python_proof_done(&p);
}

static void test_prove_skips_frames_that_have_not_begun(void **state)
{
	(void)state;
	python_proving_each(hidden_frames);
}

/* A chain that is longer than any real one. */
static void long_chain(struct python_fake *f)
{
	const struct python_frame_layout *l = &f->release->frames;
	size_t bytes = 512, count = PYTHON_DEPTH_MAX + 10;
	uint8_t *many = calloc(count, bytes);
	struct python_proof p;

	assert_non_null(many);
	for (size_t i = 0; i < count; i++) {
		memcpy(many + i * bytes, f->frames[1], bytes);
		python_fake_put_pointer(many + i * bytes, l->frame_previous, i ? many + (i - 1) * bytes : NULL);
		if (l->instruction > PYTHON_LAST_UNITS)
			python_fake_put_pointer(many + i * bytes, l->frame_instruction,
			                        f->codes[1] + l->code_start + 4);
	}
	python_fake_put_pointer(f->frames[0], l->frame_previous, many + (count - 1) * bytes);
	python_proving(&p, f);
	assert_true(p.frames_proved);
	assert_true(p.threads[0].truncated);
	assert_int_equal(p.threads[0].frames, PYTHON_DEPTH_MAX);
	assert_int_equal(p.threads[0].place_count, PYTHON_PLACES_MAX);
	python_proof_done(&p);
	free(many);
}

static void test_prove_ends_long_chains(void **state)
{
	(void)state;
	python_proving_each(long_chain);
}

/* ---- code objects and what they name ---- */

static void wrong_strings(struct python_fake *f)
{
	const struct python_release *r = f->release;
	uint32_t flags, wrong;

	memcpy(&flags, f->name + r->string_state, sizeof flags);
	python_fake_put_pointer(f->codes[0], r->code_filename, f->lines);
	refused(f, "is not the type str");
	python_fake_put_pointer(f->codes[0], r->code_filename, f->file);
	wrong = flags & ~r->string_compact;
	memcpy(f->name + r->string_state, &wrong, sizeof wrong);
	refused(f, "flags or a length");
	wrong = flags | r->string_kind;
	memcpy(f->name + r->string_state, &wrong, sizeof wrong);
	refused(f, "flags or a length");
	memcpy(f->name + r->string_state, &flags, sizeof flags);
	python_fake_put(f->name, r->string_length, UINT64_MAX);
	refused(f, "flags or a length");
	python_fake_put(f->name, r->string_length, 6);
	f->name[r->string_ascii_data] = 0xff; /* in a str that says that it is ASCII */
	refused(f, "characters that no str has");
	uint32_t beyond = 0x110000;
	python_fake_put_pointer(f->codes[0], r->code_name, python_fake_string(f, &beyond, 1, 4, false));
	refused(f, "characters that no str has");
}

static void wrong_lines(struct python_fake *f)
{
	const struct python_frame_layout *l = &f->release->frames;

	python_fake_put(f->lines, l->bytes_size, 1ull << 40);
	refused(f, "larger than");
	python_fake_put(f->lines, l->bytes_size, 1);
	refused(f, "has no line for byte");
	python_fake_put_pointer(f->codes[0], f->release->code_lines, f->name);
	refused(f, "is not the type bytes");
}

static void wrong_length(struct python_fake *f)
{
	const struct python_frame_layout *l = &f->release->frames;

	if (l->code_units == PYTHON_ABSENT)
		return;
	python_fake_put(f->codes[0], l->code_units, 1ull << 60);
	refused(f, "length that no code has");
	python_fake_put(f->codes[0], l->code_units, 0);
	refused(f, "length that no code has");
}

static void test_prove_refuses_objects_that_are_wrong(void **state)
{
	(void)state;
	python_proving_each(wrong_strings);
	python_proving_each(wrong_lines);
	python_proving_each(wrong_length);
}

static void wide_strings(struct python_fake *f)
{
	static const uint32_t snake[] = { 0x1f40d, 'a', 0xd800 };
	static const uint16_t greek[] = { 0x3bb, 0x3c0, 0 };
	static const uint8_t latin[] = { 'M', 'a', 0xdf, 'e' };
	struct python_proof p;

	python_fake_put_pointer(f->codes[0], f->release->code_filename, python_fake_string(f, snake, 3, 4, false));
	python_fake_put_pointer(f->codes[1], f->release->code_filename, python_fake_string(f, greek, 3, 2, false));
	python_fake_put_pointer(f->codes[2], f->release->code_filename, python_fake_string(f, latin, 4, 1, false));
	python_proving(&p, f);
	assert_true(p.frames_proved);
	assert_string_equal(p.threads[0].places[0].file, "\U0001f40d"
	                                                 "a\ufffd");
	assert_string_equal(p.threads[0].places[1].file, "\u03bb\u03c0\ufffd");
	assert_string_equal(p.threads[0].places[2].file, "Ma\u00dfe");
	python_proof_done(&p);
}

static void long_strings(struct python_fake *f)
{
	uint32_t wide[PYTHON_FILE_CHARS + 1];
	struct python_proof p;

	for (size_t i = 0; i < PYTHON_FILE_CHARS + 1; i++)
		wide[i] = 0x1f40d;
	python_fake_put_pointer(f->codes[0], f->release->code_name,
	                        python_fake_string(f, wide, PYTHON_NAME_CHARS, 4, false));
	python_fake_put_pointer(f->codes[0], f->release->code_filename,
	                        python_fake_string(f, wide, PYTHON_FILE_CHARS + 1, 4, false));
	python_proving(&p, f);
	assert_true(p.frames_proved);
	assert_int_equal(strlen(p.threads[0].places[0].file), 4 * PYTHON_FILE_CHARS + strlen("\u2026"));
	python_proof_done(&p);
}

static void test_strings_of_all_widths_become_utf8(void **state)
{
	(void)state;
	python_proving_each(wide_strings);
	python_proving_each(long_strings);
}

/* ---- types ---- */

static void type_of_another_name(struct python_fake *f)
{
	static char name[] = "coda";

	python_fake_put_pointer(f->code_type, f->release->type_name, name);
	refused(f, "is not the type code");
}

static void type_on_the_heap(struct python_fake *f)
{
	uint8_t *copy = malloc(512);

	assert_non_null(copy);
	memcpy(copy, f->code_type, 512);
	for (unsigned i = 0; i < FAKE_FRAMES; i++)
		python_fake_put_pointer(f->codes[i], f->release->frames.object_type, copy);
	refused(f, "is not the type code");
	free(copy);
}

static void two_types_of_a_name(struct python_fake *f)
{
	uint8_t *copy = python_fake_new(512);

	memcpy(copy, f->code_type, 512);
	python_fake_put_pointer(f->codes[FAKE_FRAMES - 1], f->release->frames.object_type, copy);
	refused(f, "is not the type code");
}

static void type_of_no_type(struct python_fake *f)
{
	python_fake_put_pointer(f->meta, f->release->frames.object_type, f->code_type);
	refused(f, "is not the type");
}

static void test_prove_refuses_types_that_are_wrong(void **state)
{
	(void)state;
	python_proving_each(type_of_another_name);
	python_proving_each(type_on_the_heap);
	python_proving_each(two_types_of_a_name);
	python_proving_each(type_of_no_type);
}

/* ---- anything ---- */

/* Whatever words are in it: the proof ends, and reads nothing that it should not. */
static void noise(struct python_fake *f)
{
	struct python_proof p;

	for (int round = 0; round < 12; round++) {
		uint8_t *parts[] = {
			f->runtime,  f->interpreter, f->state, f->frames[0], f->frames[1],
			f->codes[0], f->name,        f->lines, f->code_type, f->cframe ? f->cframe : f->state
		};
		python_fake_make(f, f->release);
		for (int changes = 1 + rand() % 3; changes > 0; changes--) {
			uint8_t *part = parts[(size_t)rand() % (sizeof parts / sizeof parts[0])];
			uint32_t at = (uint32_t)rand() % 64 * 8;
			uint64_t words[] = { (uint64_t)rand(), (uintptr_t)f->frames[0], (uintptr_t)f->state,
				             (uintptr_t)part, (uint64_t)rand() << 32 | (uint64_t)rand() };
			python_fake_put(part, at, words[(size_t)rand() % 5]);
		}
		python_proving(&p, f);
		assert_true(p.frames_proved != (p.frames_why[0] != 0));
		python_proof_done(&p);
	}
}

static void test_prove_ends_whatever_is_there(void **state)
{
	(void)state;
	srand(1);
	python_proving_each(noise);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prove_accepts_what_is_right),
		cmocka_unit_test(test_refusal_names_builds_that_are_not_known),
		cmocka_unit_test(test_prove_refuses_another_self_description),
		cmocka_unit_test(test_prove_ends_at_lists_that_are_wrong),
		cmocka_unit_test(test_prove_ends_at_frames_that_are_wrong),
		cmocka_unit_test(test_prove_skips_frames_that_have_not_begun),
		cmocka_unit_test(test_prove_ends_long_chains),
		cmocka_unit_test(test_prove_refuses_objects_that_are_wrong),
		cmocka_unit_test(test_strings_of_all_widths_become_utf8),
		cmocka_unit_test(test_prove_refuses_types_that_are_wrong),
		cmocka_unit_test(test_prove_ends_whatever_is_there),
	};
	return cmocka_run_group_tests(tests, python_proving_open, python_proving_close);
}
