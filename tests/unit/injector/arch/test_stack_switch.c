/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/stack_base.h"
#include "unwind/switch_rows.h"

#define RSP UNWIND_RULE(UNWIND_SP, 16, 0)
#define RBP UNWIND_RULE(UNWIND_FP, 16, 2)
#define UNSUPPORTED UNWIND_RULE(UNWIND_UNSUPPORTED, 0, 0)

/* Three functions of 64 bytes; the middle one counts from %rbp. */
static void make_rows(struct unwind_rows *rows)
{
	static const uint32_t pc[] = { 0, 64, 128 }, rule[] = { RSP, RBP, RSP };

	*rows = (struct unwind_rows){ .pc = malloc(sizeof pc), .rule = malloc(sizeof rule), .count = 3, .capacity = 3 };
	assert_true(rows->pc && rows->rule);
	memcpy(rows->pc, pc, sizeof pc);
	memcpy(rows->rule, rule, sizeof rule);
}

static void mark_at(const char *instruction, uint32_t at, struct unwind_rows *rows)
{
	uint8_t code[192];
	struct err e;

	memset(code, 0x90, sizeof code);
	memcpy(code + at, instruction, 3);
	make_rows(rows);
	assert_int_equal(switch_rows_mark_bytes(rows, code, sizeof code, 0, &e), 0);
}

static void test_mark_reaches_to_the_call(void **state)
{
	static const char *const switches[] = {
		"\x48\x89\xfc", /* mov %rdi,%rsp */
		"\x4c\x89\xc4", /* mov %r8,%rsp */
		"\x48\x8b\xe6", /* mov %rsi,%rsp, the other encoding */
		"\x49\x8b\x20", /* mov (%r8),%rsp */
		"\x48\x87\xe3", /* xchg */
		"\x48\x94\x90", /* xchg %rax,%rsp */
	};
	struct unwind_rows rows;

	(void)state;
	for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
		mark_at(switches[i], 10, &rows);
		assert_int_equal(unwind_rows_find(&rows, 9), RSP);
		assert_int_equal(unwind_rows_find(&rows, 10), UNSUPPORTED);
		assert_int_equal(unwind_rows_find(&rows, 41), UNSUPPORTED);
		assert_int_equal(unwind_rows_find(&rows, 42), RSP);
		assert_int_equal(unwind_rows_find(&rows, 64), RBP);
		assert_int_equal(unwind_rows_find(&rows, 128), RSP);
		unwind_rows_done(&rows);
		mark_at(switches[i], 50, &rows); /* near the end of a row */
		assert_int_equal(rows.count, 4);
		assert_int_equal(unwind_rows_find(&rows, 63), UNSUPPORTED);
		assert_int_equal(unwind_rows_find(&rows, 64), RBP);
		unwind_rows_done(&rows);
		mark_at(switches[i], 128, &rows); /* at the beginning of the last one */
		assert_int_equal(unwind_rows_find(&rows, 127), RBP);
		assert_int_equal(unwind_rows_find(&rows, 128), UNSUPPORTED);
		assert_int_equal(unwind_rows_find(&rows, 160), RSP);
		unwind_rows_done(&rows);
	}
}

static void test_mark_leaves_other_code_alone(void **state)
{
	static const char *const others[] = {
		"\x48\x89\xe7", /* mov %rsp,%rdi */
		"\x49\x89\xfc", /* mov %rdi,%r12 */
		"\x4c\x8b\x20", /* mov (%rax),%r12 */
		"\x48\x8b\x3c", /* mov (%rsp),%rdi */
		"\x49\x94\x90", /* xchg %rax,%r12 */
	};
	struct unwind_rows rows;

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		mark_at(others[i], 10, &rows);
		assert_int_equal(rows.count, 3);
		assert_int_equal(unwind_rows_find(&rows, 20), RSP);
		unwind_rows_done(&rows);
	}
	mark_at("\x48\x89\xec", 70, &rows); /* mov %rbp,%rsp where the CFA counts from %rbp */
	assert_int_equal(unwind_rows_find(&rows, 71), RBP);
	unwind_rows_done(&rows);
}

/* Any range: its frames are outermost ones, all others are as before, and no row is there twice. */
static void test_stacks_end_in_a_range(void **state)
{
	static const uint32_t marks[] = { 0, 1, 63, 64, 65, 127, 128, 129, 191 };
	const uint32_t ends = UNWIND_RULE(UNWIND_END, 0, 0);
	struct unwind_rows rows, before;

	(void)state;
	make_rows(&before);
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
			make_rows(&rows);
			assert_int_equal(stack_base_mark_rows(&rows, marks[i], marks[k]), 0);
			assert_true(unwind_rows_sound(&rows, 192));
			for (uint32_t pc = 0; pc < 192; pc++)
				assert_int_equal(unwind_rows_find(&rows, pc), pc >= marks[i] && pc < marks[k]
				                                                      ? ends
				                                                      : unwind_rows_find(&before, pc));
			unwind_rows_done(&rows);
		}
	unwind_rows_done(&before);
	rows = (struct unwind_rows){ 0 };
	assert_int_equal(stack_base_mark_rows(&rows, 0, 64), 0);
	assert_int_equal(rows.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mark_reaches_to_the_call),
		cmocka_unit_test(test_mark_leaves_other_code_alone),
		cmocka_unit_test(test_stacks_end_in_a_range),
	};

	return cmocka_run_group_tests_name("stack_switch", tests, NULL, NULL);
}
