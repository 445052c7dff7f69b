/* SPDX-License-Identifier: MIT */
/* The parts of a function that bears the evaluator's name, in this program itself. */
#include "fixture.h"

#include <stdlib.h>
#include <unistd.h>

#include "entry/evaluator_code.h"

/*
 * It jumps into the middle of one part, to the beginning of another, which no function is, and calls at its end a
 * function and a stub.
 */
__asm__(".text\n"
        ".globl _PyEval_EvalFrameDefault\n"
        ".type _PyEval_EvalFrameDefault, @function\n"
        "_PyEval_EvalFrameDefault:\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        "test %edi, %edi\n"
        "je part_middle + 4\n"
        "js part_begin\n"
        "call another_function\n"
        "pop %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "je another_function\n"
        "js some_stub + 16\n"
        "jmp another_function\n"
        ".cfi_endproc\n"
        ".size _PyEval_EvalFrameDefault, . - _PyEval_EvalFrameDefault\n"
        ".balign 16\n"
        "another_function:\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        "pop %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".balign 16\n"
        "part_middle:\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa_offset 16\n"
        ".skip 20, 0x90\n"
        "jmp _PyEval_EvalFrameDefault\n"
        ".cfi_endproc\n"
        "part_middle_end:\n"
        ".balign 16\n"
        "part_begin:\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa_offset 16\n"
        ".skip 30, 0x90\n"
        "jmp _PyEval_EvalFrameDefault\n"
        ".cfi_endproc\n"
        "part_begin_end:\n"
        ".balign 16\n"
        "some_stub:\n" /* a list of them has one description */
        ".cfi_startproc\n"
        ".cfi_def_cfa_offset 16\n"
        ".skip 16, 0x90\n"
        "endbr64\n"
        "jmp *some_word(%rip)\n"
        ".cfi_endproc\n"
        ".data\n"
        "some_word: .quad 0\n"
        ".text\n");

extern const char _PyEval_EvalFrameDefault[], part_middle[], part_middle_end[], part_begin[], part_begin_end[];

static const struct elf_module *own_module(const struct view *view)
{
	return modules_find(&view->modules, (uint64_t)(uintptr_t)_PyEval_EvalFrameDefault, true);
}

static void test_evaluator_has_its_parts(void **state)
{
	struct dump_evaluator list[DUMP_EVALUATORS] = { 0 };
	struct view view;

	(void)state;
	view_open(&view, getpid(), false);
	evaluator_code_find(list, own_module(&view), &view.tm, &view.maps);
	view_close(&view);
	assert_int_equal(list[0].start, (uintptr_t)_PyEval_EvalFrameDefault);
	assert_true(list[0].bytes > 10 && list[0].bytes <= 32);
	assert_int_equal(list[1].start, (uintptr_t)part_middle);
	assert_int_equal(list[1].bytes, part_middle_end - part_middle);
	assert_int_equal(list[2].start, (uintptr_t)part_begin);
	assert_int_equal(list[2].bytes, part_begin_end - part_begin);
	assert_int_equal(list[3].bytes, 0);
}

static void test_no_evaluator_has_none(void **state)
{
	struct dump_evaluator list[DUMP_EVALUATORS] = { 0 };
	struct view view;

	(void)state;
	view_open(&view, getpid(), false);
	evaluator_code_find(list, view_module(&view, "libc.so"), &view.tm, &view.maps);
	view_close(&view);
	assert_int_equal(list[0].bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_evaluator_has_its_parts),
		cmocka_unit_test(test_no_evaluator_has_none),
	};

	return cmocka_run_group_tests_name("evaluator_code", tests, NULL, NULL);
}
