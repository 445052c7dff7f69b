/* SPDX-License-Identifier: MIT */
/* What a collector of garbage frees is not called a leak before it must have collected; what code that moves has
 * allocated is not said to be none. The test looks for itself. */
#include "views.h"

#include <link.h>

/* By the name that it has in V8. */
void array_buffer(void) __asm__("_ZN2v88internal12BackingStore8AllocateEv");

__attribute__((noinline)) void array_buffer(void)
{
	__asm__ volatile("");
}

static int find_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1; /* the first is the program */
}

/* Forty blocks of so many bytes are kept, by one after the other in so large a part of the session before its middle is
 * over, or in all of it. */
static void leak_in(struct report *r, uint64_t function, uint64_t bytes, double part)
{
	const uint64_t frames[] = { DUMP_FRAME(1, function + 1) };
	uint64_t start = function & ~0xfffffull, bias = 0;
	char program[4096] = { 0 };
	struct dump_builder b;

	assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
	dl_iterate_phdr(find_bias, &bias);
	dump_builder_init(&b, RATE, 64, 8, 1);
	dump_builder_module(&b, 1, bias, start, start + 0x200000, program, NULL, 0, 0);
	uint32_t stack = dump_builder_stack(&b, frames, 1, 0);
	for (int i = 0; i < 40; i++)
		sample(&b, stack, bytes, RATE, part < 1 ? 12 + part * 30 * i / 40 : 30.0 * i / 40, 0);
	make(r, &b, (struct report_options){ .symbols = true, .leaks = true });
	dump_builder_done(&b);
}

static void leak(struct report *r, uint64_t function, uint64_t bytes)
{
	leak_in(r, function, bytes, 1);
}

static void test_garbage_is_no_leak(void **state)
{
	struct report r;

	(void)state;
	leak(&r, (uint64_t)(uintptr_t)array_buffer, 100000);
	assert_true(r.rows.list[0].grows && r.rows.list[0].collected && !r.rows.list[0].grown);
	assert_says(text_of(&r), "grows; may be garbage that V8 has yet to collect");
	assert_says(json_of(&r), "\"garbage\":true");
	report_done(&r);
	/* As much as it would have collected. */
	leak(&r, (uint64_t)(uintptr_t)array_buffer, 10000000);
	assert_true(r.rows.list[0].grown && !r.rows.list[0].collected);
	report_done(&r);
	leak(&r, (uint64_t)(uintptr_t)find_bias, 100000);
	assert_true(r.rows.list[0].grown && !r.rows.list[0].collected);
	report_done(&r);
}

/* What the same code allocates after it was compiled anew is of another stack. */
static void test_what_came_in_one_go_may_be_of_code_that_moved(void **state)
{
	struct report r;

	(void)state;
	leak_in(&r, (uint64_t)(uintptr_t)find_bias, 100000, 0.05);
	assert_says(text_of(&r), "   no leak: came in one go");
	report_done(&r);
	leak_in(&r, (uint64_t)(uintptr_t)array_buffer, 100000, 0.05);
	assert_says(text_of(&r), "   no leak, unless its code was compiled anew: came in one go");
	report_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_garbage_is_no_leak),
		                            cmocka_unit_test(test_what_came_in_one_go_may_be_of_code_that_moved) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
