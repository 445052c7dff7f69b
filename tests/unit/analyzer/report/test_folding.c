/* SPDX-License-Identifier: MIT */
/* Which frames of a stack are folded, where names alone do not say it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "dump_builder.h"
#include "report/folding.h"

#define INNER DUMP_FRAME(1, 0x400100)
#define CALLER(i) DUMP_FRAME(1, 0x401000 + 16 * (uint64_t)(i))
#define OUTER DUMP_FRAME(1, 0x402000)

static void make(struct report *r, struct dump_builder *b, struct report_options options)
{
	struct dump *dump;
	struct err e;
	int fd = dump_builder_fd(b, b->size);

	options.confidence = 0.95;
	assert_int_equal(dump_open_fd(fd, &dump, &e), 0);
	assert_int_equal(report_make(r, dump, "x.dump", &options, &e), 0);
	dump_close(dump);
	close(fd);
}

/* The frame that is said to hold what the rows have, of a function without a name with so many callers. */
static size_t own_frame(unsigned callers, struct report_options options)
{
	struct dump_builder b;
	struct report r;

	dump_builder_init(&b, 1, 1024, 64, 4);
	dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/nowhere/server", NULL, 0, 0);
	for (unsigned i = 0; i < callers; i++) {
		const uint64_t frames[] = { INNER, CALLER(i), OUTER };
		dump_builder_sample(&b, dump_builder_stack(&b, frames, 3, 0), 100, 1, 1);
	}
	make(&r, &b, options);
	assert_int_equal(r.rows.count, callers);
	size_t frame = report_own(&r, &r.rows.list[0]).frame;
	for (size_t i = 1; i < r.rows.count; i++)
		assert_int_equal(report_own(&r, &r.rows.list[i]).frame, frame);
	report_done(&r);
	dump_builder_done(&b);
	return frame;
}

static void test_what_many_callers_pass_through_is_folded(void **state)
{
	(void)state;
	assert_int_equal(own_frame(8, (struct report_options){ .symbols = true }), 1);
	assert_int_equal(own_frame(7, (struct report_options){ .symbols = true }), 0);
	assert_int_equal(own_frame(8, (struct report_options){ .symbols = true, .show_std = true }), 0);
	assert_int_equal(own_frame(8, (struct report_options){ .symbols = false }), 0);
}

/* Of the row through load_tiles, how many frames are shown, and whether native ones lead them as a package. */
static size_t tiles(struct report_options options, bool *package)
{
	struct folded_stack stack = { 0 };
	struct dump_builder b;
	struct report r;
	size_t count = 0;

	dump_builder_snake(&b);
	make(&r, &b, options);
	for (size_t i = 0; i < r.rows.count && !count; i++) {
		const struct report_row *row = &r.rows.list[i];
		assert_int_equal(folded_stack_make(&stack, &r, row), 0);
		*package = stack.count > 1 && stack.list[0].package;
		if (*package)
			assert_string_equal(stack.list[0].name, "numpy");
		for (size_t k = 0; k < stack.count; k++)
			if (!stack.list[k].name[0] && stack.list[k].location->function &&
			    !strcmp(stack.list[k].location->function, "load_tiles"))
				count = stack.count;
	}
	folded_stack_done(&stack);
	report_done(&r);
	dump_builder_done(&b);
	return count;
}

static void test_native_frames_below_python_are_a_package(void **state)
{
	bool package;

	(void)state;
	assert_int_equal(tiles((struct report_options){ .symbols = true }, &package), 4);
	assert_true(package);
	assert_int_equal(tiles((struct report_options){ .symbols = true, .show_std = true }, &package), 4);
	assert_false(package);
}

/* As of a compiler that Python calls. */
static void test_own_code_below_python_is_a_package(void **state)
{
	struct folded_stack stack = { 0 };
	struct dump_builder b;
	struct report r;
	bool found = false;

	(void)state;
	dump_builder_snake(&b);
	make(&r, &b, (struct report_options){ .symbols = true });
	for (size_t i = 0; i < r.rows.count && !found; i++) {
		struct report_row *row = &r.rows.list[i];
		assert_int_equal(folded_stack_make(&stack, &r, row), 0);
		found = stack.count && stack.list[0].package;
		if (!found)
			continue;
		row->frames[stack.list[0].count - 1] = PLACE(0, 0x7f0000001234);
		assert_int_equal(folded_stack_make(&stack, &r, row), 0);
		assert_true(stack.list[0].package);
		assert_string_equal(stack.list[0].name, "no module");
	}
	assert_true(found);
	folded_stack_done(&stack);
	report_done(&r);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_many_callers_pass_through_is_folded),
		                            cmocka_unit_test(test_native_frames_below_python_are_a_package),
		                            cmocka_unit_test(test_own_code_below_python_is_a_package) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
