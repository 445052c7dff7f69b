/* SPDX-License-Identifier: MIT */
/* The stacks that are known, by what this C library notes in the control blocks of this program's threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "arch/machine.h"
#include "control.h"
#include "walk/known_stack.h"

#define END 0x7ffc00000000ull
#define START (END - 0x21000)

static void test_main_stack_grows(void **state)
{
	(void)state;
	known_stacks_init(START, END, MAIN_STACK_GAP);
	assert_true(known_stack_end(END - 8, 0) == END);
	assert_true(known_stack_end(START, 0) == END);
	assert_true(known_stack_end(END, 0) == 0);
	assert_true(known_stack_end(START - MAIN_STACK_GAP - 8, 0) == 0);      /* may be something else */
	assert_true(known_stack_end(START - MAIN_STACK_GAP + 4096, 0) == END); /* it has grown */
	assert_true(known_stack_end(START - MAIN_STACK_GAP - 8, 0) == END);
	assert_true(known_stack_end(START - 3 * MAIN_STACK_GAP, 0) == 0);
}

static void test_main_stack_without_gap(void **state)
{
	(void)state;
	known_stacks_init(START, END, 0);
	assert_true(known_stack_end(START, 0) == END);
	assert_true(known_stack_end(START - 8, 0) == 0);
	known_stacks_init(0, END, 0);
	assert_true(known_stack_end(END - 8, 0) == 0);
}

static uint64_t learnt_at;

static void *thread(void *other)
{
	uint64_t tp = arch_thread_pointer(), here = (uint64_t)&tp;

	known_stacks_learn(tp);
	learnt_at = known_stacks.noted_at;
	if (known_stack_end(here, tp) != tp || known_stack_end((uint64_t)other, tp) || known_stack_end(tp, tp))
		return NULL;
	return other;
}

static void check_thread(const pthread_attr_t *attributes)
{
	char *other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t;
	void *result;

	assert_int_equal(pthread_create(&t, attributes, thread, other), 0);
	assert_int_equal(pthread_join(t, &result), 0);
	assert_ptr_equal(result, other);
	munmap(other, 4096);
}

/* Made by the library, small, and the program's own, at an odd address. */
static void test_stacks_of_threads(void **state)
{
	static char own[300000];
	pthread_attr_t attributes;
	uint64_t first;

	(void)state;
	known_stacks_init(0, 0, 0);
	known_stacks_learn(arch_thread_pointer()); /* of the main thread nothing is noted */
	assert_int_equal(known_stacks.noted_at, 0);
	check_thread(NULL);
	first = learnt_at;
	assert_true(first != 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	check_thread(&attributes);
	pthread_attr_setstack(&attributes, own + 24, sizeof(own) - 1000);
	check_thread(&attributes);
	pthread_attr_destroy(&attributes);
	assert_int_equal(learnt_at, first);
	assert_int_equal(known_stack_end((uint64_t)&first, arch_thread_pointer()), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_main_stack_grows),
		cmocka_unit_test(test_main_stack_without_gap),
		cmocka_unit_test(test_stacks_of_threads),
	};

	return cmocka_run_group_tests_name("known_stack", tests, NULL, NULL);
}
