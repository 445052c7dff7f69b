/* SPDX-License-Identifier: MIT */
/*
 * When a code object need not be read again (known_code.h), over the fake interpreters of memattach's own tests. What
 * the payload believes shows in what it does not notice: a name that is changed in place, which nobody does.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "arch/machine.h"
#include "python/known_code.h"
#include "payload.h"
#include "python/python_frames.h"
#include "python_inside.h"
#include "tables_fixture.h"

#define ADDRESS 0x7f0000001230ull
#define HASH 0x123456789abcdef1ull

static uint64_t freed; /* calls that came to the original */

/* Stands for code_dealloc. */
static uint64_t original(uint64_t code)
{
	freed++;
	return code + 1;
}

static uint64_t word;       /* PyCode_Type.tp_dealloc */
static uint8_t end_code[9]; /* its function: the code that tells that there is a jump begins at any byte */

static void watch(void)
{
	struct control_trampoline trampolines[2] = {
		{ .original = (uint64_t)original, .hook = HOOK_free },
		{ .original = (uint64_t)original, .hook = HOOK_python_code },
	};
	struct control_patch patch = { .trampoline_count = 2, .trampolines = (uint64_t)trampolines };
	struct counted_function *counted = (struct counted_function *)memattach_session.counted_function_address;

	assert_int_equal(memattach_control(CONTROL_PATCH, &patch), 0);
	word = trampoline_address(memattach_session.trampolines_address, 1, HOOK_python_code);
	memset(end_code, 0xe9, sizeof end_code);
	memcpy(&counted->code, &end_code[1], sizeof counted->code);
	counted->pointer = (uint64_t)&word;
	counted->function = word;
	counted->jump = (uint64_t)&end_code[1];
}

/* As the interpreter does it. */
static void free_code(void)
{
	uint64_t before = freed, (*volatile function)(uint64_t) = (uint64_t(*)(uint64_t))word;

	assert_int_equal(function(ADDRESS), ADDRESS + 1);
	assert_int_equal(freed, before + 1);
}

static uint64_t stack_hash(const struct python_fake *f)
{
	struct unwind_result r = { .count = 2, .hash = 1 };

	python_inside_layout(f, &payload.python);
	python_frames_add(arch_thread_pointer(), &r);
	return r.hash;
}

/* As many samples as it takes until the table is used, and one more. */
static void calm_down(const struct python_fake *f)
{
	for (unsigned i = 0; i < KNOWN_CODE_CALM + 2; i++)
		stack_hash(f);
}

/* Another object is at the address of the first; *f says what its name begins with. */
static void replace(struct python_fake *f)
{
	f->name[f->release->string_ascii_data]++;
}

static bool notices(struct python_fake *f)
{
	uint64_t before = stack_hash(f);

	replace(f);
	return stack_hash(f) != before;
}

static void counted(struct python_fake *f)
{
	uint64_t before;

	free_code();
	assert_true(notices(f)); /* it is not calm yet */
	calm_down(f);
	assert_false(notices(f)); /* nothing was freed, so it is not read again */
	free_code();
	assert_true(notices(f));
	calm_down(f);
	assert_false(notices(f)); /* what was read in the new generation is believed */
	before = stack_hash(f);
	free_code();
	replace(f); /* which is seen, however late it is looked at again */
	calm_down(f);
	assert_int_not_equal(stack_hash(f), before);
	assert_false(notices(f));
}

static void test_code_is_read_anew_after_one_was_freed(void **state)
{
	(void)state;
	watch();
	python_inside_each(counted);
}

static void uncounted(struct python_fake *f)
{
	calm_down(f);
	assert_true(notices(f));
}

static void test_code_is_always_read_where_the_word_is_not_patched(void **state)
{
	(void)state;
	word = (uint64_t)original;
	python_inside_each(uncounted);
}

static struct python_fake *make_first(void)
{
	static struct python_fake f;
	uint32_t count;

	python_fake_make(&f, &python_release_list(&count)[0]);
	return &f;
}

/* Whoever has put his own function there may take ours back, but not undo what went uncounted meanwhile. */
static void test_code_is_always_read_once_the_word_was_somebody_elses(void **state)
{
	struct python_fake *f = make_first();
	uint64_t ours;

	(void)state;
	watch();
	calm_down(f);
	assert_false(notices(f));
	ours = word;
	word = (uint64_t)original;
	assert_true(notices(f));
	word = ours;
	calm_down(f);
	assert_true(notices(f));
}

/* The same of the jump. */
static void test_code_is_always_read_once_the_jump_was_gone(void **state)
{
	struct python_fake *f = make_first();

	(void)state;
	watch();
	calm_down(f);
	assert_false(notices(f));
	end_code[8] ^= 1;
	assert_true(notices(f));
	end_code[8] ^= 1;
	calm_down(f);
	assert_true(notices(f));
}

static void test_code_is_always_read_once_the_word_is_put_back(void **state)
{
	struct python_fake *f = make_first();

	(void)state;
	watch();
	calm_down(f);
	assert_false(notices(f));
	((struct counted_function *)memattach_session.counted_function_address)->jump = 0;
	word = (uint64_t)original;
	calm_down(f);
	assert_true(notices(f));
}

static void test_code_is_always_read_once_trampolines_are_inert(void **state)
{
	struct python_fake *f = make_first();

	(void)state;
	watch();
	calm_down(f);
	fixture_inert(&memattach_session);
	calm_down(f);
	assert_true(notices(f));
	free_code(); /* the trampoline leads to the original, as a copy of its address may later */
}

/* The payload of before, which was not unloaded: what it knew is from when nothing was counted in between. */
static void test_the_next_session_knows_nothing(void **state)
{
	struct python_fake *f = make_first();
	uint64_t generation, hash;

	watch();
	calm_down(f);
	generation = known_code_generation();
	assert_true(generation && known_code_find(generation, (uint64_t)f->codes[0], &hash));
	assert_int_equal(close_session(state), 0);
	assert_int_equal(open_session(state), 0);
	assert_int_equal(known_code_generation(), 0);
	assert_false(known_code_find(generation, (uint64_t)f->codes[0], &hash));
	calm_down(f);
	assert_true(notices(f));
}

static uint64_t calm_generation(void)
{
	for (unsigned i = 0; i < KNOWN_CODE_CALM + 1; i++)
		known_code_generation();
	return known_code_generation();
}

/* Freed while the other object was read: that belongs to the generation before. */
static void test_what_was_read_belongs_to_the_generation_before(void **state)
{
	uint64_t hash, generation;

	(void)state;
	watch();
	generation = calm_generation();
	assert_true(generation);
	free_code();
	known_code_keep(generation, ADDRESS, HASH);
	assert_int_equal(known_code_generation(), 0);
	generation = calm_generation();
	assert_true(generation);
	assert_false(known_code_find(generation, ADDRESS, &hash));
	assert_true(known_code_find(generation - 1, ADDRESS, &hash) && hash == HASH);
	known_code_keep(generation, ADDRESS, HASH + 1);
	assert_true(known_code_find(generation, ADDRESS, &hash) && hash == HASH + 1);
	assert_false(known_code_find(generation, ADDRESS + 32, &hash));
}

/* Code that comes and goes between any two samples leaves the table alone. */
static void test_restless_programs_pay_for_no_table(void **state)
{
	(void)state;
	watch();
	for (unsigned i = 0; i < 100; i++) {
		free_code();
		for (unsigned k = 0; k <= KNOWN_CODE_CALM; k++)
			assert_int_equal(known_code_generation(), 0);
	}
	assert_int_not_equal(known_code_generation(), 0);
}

/* Words of two writers in one entry. */
static void test_torn_entries_do_not_match(void **state)
{
	struct known_code *entry = NULL, one, other, torn;
	uint64_t hash;

	(void)state;
	known_code_keep(5, ADDRESS, HASH);
	for (unsigned i = 0; i < KNOWN_CODE_SETS * KNOWN_CODE_WAYS && !entry; i++)
		if (known_codes[i / KNOWN_CODE_WAYS][i % KNOWN_CODE_WAYS].hash == HASH)
			entry = &known_codes[i / KNOWN_CODE_WAYS][i % KNOWN_CODE_WAYS];
	assert_non_null(entry);
	one = *entry;
	memset(entry, 0, sizeof *entry);
	known_code_keep(6, ADDRESS, HASH * 3);
	other = *entry;
	assert_true(known_code_find(6, ADDRESS, &hash));
	for (unsigned i = 1; i < 7; i++) {
		torn.address = i & 1 ? one.address : other.address;
		torn.generation = i & 2 ? one.generation : other.generation;
		torn.hash = i & 4 ? one.hash : other.hash;
		*entry = torn;
		assert_false(known_code_find(5, ADDRESS, &hash) || known_code_find(6, ADDRESS, &hash));
	}
}

static void test_a_set_keeps_what_is_in_force(void **state)
{
	uint64_t hash, mates[3], count = 0;

	(void)state;
	/* Three addresses of one set. */
	for (uint64_t address = ADDRESS; count < 3; address += 16) {
		memset(known_codes, 0, sizeof(known_codes[0]));
		known_code_keep(1, address, HASH);
		if (known_codes[0][0].hash || known_codes[0][1].hash)
			mates[count++] = address;
		assert_true(address < ADDRESS + (1 << 22));
	}
	memset(known_codes, 0, sizeof(known_codes[0]));
	known_code_keep(1, mates[0], HASH);
	known_code_keep(2, mates[1], HASH + 1);
	known_code_keep(2, mates[2], HASH + 2);
	assert_true(known_code_find(2, mates[1], &hash) && hash == HASH + 1);
	assert_true(known_code_find(2, mates[2], &hash) && hash == HASH + 2);
	assert_false(known_code_find(1, mates[0], &hash));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_code_is_read_anew_after_one_was_freed),
		SESSION_TEST(test_code_is_always_read_where_the_word_is_not_patched),
		SESSION_TEST(test_code_is_always_read_once_the_word_was_somebody_elses),
		SESSION_TEST(test_code_is_always_read_once_the_jump_was_gone),
		SESSION_TEST(test_code_is_always_read_once_the_word_is_put_back),
		SESSION_TEST(test_code_is_always_read_once_trampolines_are_inert),
		SESSION_TEST(test_the_next_session_knows_nothing),
		SESSION_TEST(test_what_was_read_belongs_to_the_generation_before),
		SESSION_TEST(test_restless_programs_pay_for_no_table),
		SESSION_TEST(test_torn_entries_do_not_match),
		SESSION_TEST(test_a_set_keeps_what_is_in_force),
	};

	return cmocka_run_group_tests_name("known_code", tests, NULL, NULL);
}
