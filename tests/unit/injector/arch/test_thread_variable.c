/* SPDX-License-Identifier: MIT */
/* Functions that return a word of the thread, in the ways in which compilers and linkers make them, and others. */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "python/python_attached.h"
#include "arch/thread_variable.h"

#define FUNCTION(name, body)                                                                                           \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" body "\n.size " #name              \
	        ", . - " #name "\n");                                                                                  \
	extern const uint8_t name[]

FUNCTION(local_exec, "endbr64\nmov %fs:-24, %rax\nret");
FUNCTION(with_frame, "endbr64\npush %rbp\nmov %rsp, %rbp\nmov %fs:-8, %rax\npop %rbp\nret");
FUNCTION(from_start, "mov %fs:0, %rax\nmov -24(%rax), %rax\nret");
FUNCTION(from_start_by_lea, "mov %fs:0, %rax\nlea -32(%rax), %rax\nmov 8(%rax), %rax\nret");
FUNCTION(relaxed, "mov $-24, %rax\nmov %fs:(%rax), %rax\nret");
FUNCTION(initial_exec, "mov 0x1000 + initial_exec(%rip), %rax\nmov %fs:(%rax), %rax\nret");
FUNCTION(initial_exec_sum, "mov %fs:0, %rax\nadd 0x1000 + initial_exec_sum(%rip), %rax\nmov (%rax), %rax\nret");
FUNCTION(dynamic, "sub $8, %rsp\n.byte 0x66\nlea 0x1000 + dynamic(%rip), %rdi\ncall local_exec\nmov 16(%rax), %rax\n"
                  "add $8, %rsp\nret");
FUNCTION(dynamic_pushed, "push %rax\nlea 0x1000 + dynamic_pushed(%rip), %rdi\ncall local_exec\nmov (%rax), %rax\n"
                         "pop %rcx\nret");

FUNCTION(far_away, "movabs $0x7fffffffffffffff, %rax\nlea 0x7fffffff(%rax), %rax\nmov %fs:(%rax), %rax\nret");

FUNCTION(with_condition, "mov %fs:-24, %rax\ntest %rax, %rax\nje 1f\nret\n1: ud2");
FUNCTION(of_an_argument, "mov %fs:(%rdi), %rax\nret");
FUNCTION(of_data, "mov 0x1000 + of_data(%rip), %rax\nret");
FUNCTION(address_alone, "mov %fs:0, %rax\nlea -24(%rax), %rax\nret");
FUNCTION(of_what_is_there, "mov %fs:-24, %rax\nmov 8(%rax), %rax\nret");
FUNCTION(half_a_word, "mov %fs:-24, %eax\nret");
FUNCTION(indexed, "mov $-24, %rax\nmov %fs:(%rax, %rdi), %rax\nret");
FUNCTION(changed, "mov %fs:-24, %rax\nand $-8, %rax\nret");
FUNCTION(after_a_call, "mov %fs:-24, %rax\ncall local_exec\nret");
FUNCTION(popped, "mov %fs:-24, %rax\npush %rdi\npop %rax\nret");
FUNCTION(popped_argument, "lea 0x1000 + popped_argument(%rip), %rdi\npush %rsi\npop %rdi\ncall local_exec\n"
                          "mov (%rax), %rax\nret");
FUNCTION(popped_half, "mov %fs:-24, %rax\npush %rdi\npopw %ax\nret");
FUNCTION(of_another_call, "mov $5, %rdi\ncall local_exec\nmov (%rax), %rax\nret");
FUNCTION(stores, "mov %fs:-24, %rax\nmov %rdi, %fs:-24\nret");
FUNCTION(jumps, "mov %fs:-24, %rax\njmp local_exec");
FUNCTION(long_one, ".rept 100\nnop\n.endr\nmov %fs:-24, %rax\nret");

static void is(const uint8_t *code, enum thread_variable_kind kind, uint64_t address, int64_t offset)
{
	struct thread_variable v;

	assert_true(thread_variable_read(&v, code, 64, (uintptr_t)code));
	assert_int_equal(v.kind, kind);
	assert_int_equal(v.address, address);
	assert_int_equal(v.offset, offset);
}

static void test_known_ways_are_followed(void **state)
{
	(void)state;
	is(local_exec, THREAD_VARIABLE_OFFSET, 0, -24);
	is(with_frame, THREAD_VARIABLE_OFFSET, 0, -8);
	is(from_start, THREAD_VARIABLE_OFFSET, 0, -24);
	is(from_start_by_lea, THREAD_VARIABLE_OFFSET, 0, -24);
	is(relaxed, THREAD_VARIABLE_OFFSET, 0, -24);
	is(far_away, THREAD_VARIABLE_OFFSET, 0, INT64_MIN + 0x7ffffffe);
	is(initial_exec, THREAD_VARIABLE_WORD, (uintptr_t)initial_exec + 0x1000, 0);
	is(initial_exec_sum, THREAD_VARIABLE_WORD, (uintptr_t)initial_exec_sum + 0x1000, 0);
	is(dynamic, THREAD_VARIABLE_INDEX, (uintptr_t)dynamic + 0x1000, 16);
	is(dynamic_pushed, THREAD_VARIABLE_INDEX, (uintptr_t)dynamic_pushed + 0x1000, 0);
}

static void test_anything_else_is_refused(void **state)
{
	const uint8_t *const others[] = { with_condition, of_an_argument,  of_data, address_alone, of_what_is_there,
		                          half_a_word,    indexed,         changed, after_a_call,  popped,
		                          stores,         of_another_call, jumps,   long_one,      popped_argument,
		                          popped_half };
	struct thread_variable v;

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (thread_variable_read(&v, others[i], 64, (uintptr_t)others[i]))
			fail_msg("function %zu is taken for one that is known", i);
	for (size_t bytes = 0; bytes < 14; bytes++) /* not all of it is there */
		assert_false(thread_variable_read(&v, local_exec, bytes, (uintptr_t)local_exec));
}

/* ---- in modules ---- */

/* This program exports a function as interpreters do; the library two, of two kinds, for one variable of its own. */
static __thread uint64_t variable __attribute__((used));
FUNCTION(PyThreadState_GetUnchecked, "mov %fs:variable@tpoff, %rax\nret");
uint64_t *attached_library_variable(void);

static struct view view;

static int open_view(void **state)
{
	(void)state;
	view_open(&view, getpid(), false);
	return 0;
}

static int close_view(void **state)
{
	(void)state;
	view_close(&view);
	return 0;
}

static int find(int64_t *offset, const struct elf_module *m, unsigned minor, struct err *e)
{
	struct budget budget;
	struct python_view v = { .modules = &view.modules,
		                 .memory = target_memory_charged(&view.tm, &budget),
		                 .release = python_release_find(minor) };
	struct python_specific s;

	budget_start(&budget, 64u << 20, 64u << 20);
	if (python_specific_find(&s, &view.modules, &view.maps, &v.memory, e))
		skip(); /* not the C library that is known */
	return python_attached_find(offset, &v, m, &view.maps, &s, e);
}

static void test_variable_of_a_program(void **state)
{
	int64_t offset;
	struct err e;

	(void)state;
	if (find(&offset, modules_main(&view.modules), 13, &e))
		fail_msg("%s", e.text);
	assert_ptr_equal((char *)pthread_self() + offset, &variable);
	assert_int_equal(find(&offset, modules_main(&view.modules), 11, &e), -ENOSYS);
	assert_non_null(strstr(e.text, "this version does not"));
}

static void *in_a_thread(void *offset)
{
	return (char *)pthread_self() + *(int64_t *)offset == (char *)attached_library_variable() ? offset : NULL;
}

static void test_variable_of_a_library(void **state)
{
	pthread_t thread;
	int64_t offset;
	struct err e;
	void *result;

	(void)state;
	assert_int_equal(find(&offset, view_module(&view, "attached_library"), 12, &e), 0);
	assert_ptr_equal((char *)pthread_self() + offset, attached_library_variable());
	assert_int_equal(pthread_create(&thread, NULL, in_a_thread, &offset), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_non_null(result);
}

static void test_what_does_not_fit_is_refused(void **state)
{
	int64_t offset;
	struct err e;

	(void)state;
	assert_int_equal(find(&offset, view_module(&view, "attached_contrary"), 12, &e), -ENOSYS);
	assert_non_null(strstr(e.text, "do not agree"));
	assert_int_equal(find(&offset, view_module(&view, "attached_unrelocated"), 12, &e), -ENOSYS);
	assert_non_null(strstr(e.text, "does not tell"));
	assert_int_equal(find(&offset, view_module(&view, "attached_outside"), 12, &e), -ENOSYS);
	assert_non_null(strstr(e.text, "does not tell"));
	assert_int_equal(find(&offset, view_module(&view, "libc.so"), 12, &e), -ENOSYS);
	assert_non_null(strstr(e.text, "exports no function"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_ways_are_followed),      cmocka_unit_test(test_anything_else_is_refused),
		cmocka_unit_test(test_variable_of_a_program),        cmocka_unit_test(test_variable_of_a_library),
		cmocka_unit_test(test_what_does_not_fit_is_refused),
	};
	return cmocka_run_group_tests(tests, open_view, close_view);
}
