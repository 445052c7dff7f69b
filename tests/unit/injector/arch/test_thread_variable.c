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

#ifdef __x86_64__
#include "thread_functions_x86_64.h"
#else
#include "thread_functions_aarch64.h"
#endif

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
#define X(...) is(__VA_ARGS__);
	KNOWN
#undef X
}

static void test_anything_else_is_refused(void **state)
{
	const uint8_t *const others[] = { OTHERS };
	struct thread_variable v;

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (thread_variable_read(&v, others[i], 64, (uintptr_t)others[i]))
			fail_msg("function %zu is taken for one that is known", i);
	for (size_t bytes = 0; bytes < SHORTEST; bytes++) /* not all of it is there */
		assert_false(thread_variable_read(&v, local_exec, bytes, (uintptr_t)local_exec));
}

/* ---- in modules ---- */

/* This program exports a function as interpreters do; the library two, of two kinds, for one variable of its own. */
static __thread uint64_t variable __attribute__((used));
#ifdef __x86_64__
FUNCTION(PyThreadState_GetUnchecked, "mov %fs:variable@tpoff, %rax\nret");
#else
FUNCTION(PyThreadState_GetUnchecked, "mrs x0, tpidr_el0\nadd x0, x0, #:tprel_hi12:variable, lsl #12\n"
                                     "add x0, x0, #:tprel_lo12_nc:variable\nldr x0, [x0]\nret");
#endif
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
	assert_ptr_equal((char *)__builtin_thread_pointer() + offset, &variable);
	assert_int_equal(find(&offset, modules_main(&view.modules), 11, &e), -ENOSYS);
	assert_non_null(strstr(e.text, "this version does not"));
}

static void *in_a_thread(void *offset)
{
	return (char *)__builtin_thread_pointer() + *(int64_t *)offset == (char *)attached_library_variable() ? offset
	                                                                                                      : NULL;
}

static void test_variable_of_a_library(void **state)
{
	pthread_t thread;
	int64_t offset;
	struct err e;
	void *result;

	(void)state;
	assert_int_equal(find(&offset, view_module(&view, "attached_library"), 12, &e), 0);
	assert_ptr_equal((char *)__builtin_thread_pointer() + offset, attached_library_variable());
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
