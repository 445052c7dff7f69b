/* SPDX-License-Identifier: MIT */
/* Which Method a frame was of, where others come to its place. This program's own memory stands in for the JVM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arch/java_frame.h"
#include "java_fake.h"
#include "recording/dump_writer_internal.h"
#include "session/java_names.h"

#define RATE 1u
#define DUMP_BYTES (64u << 20)

static struct dump_writer writer;
static struct java_names *names;
static struct java_fake fake;
static uint64_t unloaded; /* classes */

/* Linked in the place of the clock: each look at it takes so long. */
static uint64_t now, step;
uint64_t __wrap_clock_monotonic_ns(void);
uint64_t __wrap_clock_monotonic_ns(void)
{
	return now += step;
}

static int begin(void **state)
{
	const struct dump_writer_options options = { .max_bytes = DUMP_BYTES, .rate_bytes = RATE };
	const struct java_view v = java_fake_view(&fake);
	struct err e;

	(void)state;
	java_fake_make(&fake, "Coming");
	now = step = unloaded = 0;
	if (dump_writer_create(&writer, &options, &e))
		return -1;
	names = java_names_new(&v, &v.memory, DUMP_BYTES);
	if (!names)
		return -1;
	names->counter = java_fake_at(&unloaded);
	names->unloads = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	java_names_free(names);
	dump_writer_close(&writer);
	return 0;
}

static struct dump_region *region(enum dump_region_kind kind)
{
	for (uint32_t i = 0; i < writer.own->region_count; i++)
		if (writer.own->regions[i].kind == kind)
			return &writer.own->regions[i];
	fail();
	return NULL;
}

/* A stack of one frame, at a bytecode of the Method, stored as the payload does. */
static void record(uint32_t bytecode)
{
	const uint64_t method = java_fake_at(&fake.method), age = writer.shared->java_age;
	const uint64_t frame = JAVA_FRAME(JAVA_FRAME_AGED(method, age), java_fake_at(&fake.constant.code[bytecode]));
	struct dump_region *stacks = region(DUMP_REGION_STACKS);
	struct dump_arena *arena = dump_writer_at(&writer, stacks->offset);
	const uint64_t at = stacks->offset + sizeof *arena + arena->used;
	struct dump_stack *stack = dump_writer_at(&writer, at);
	uint64_t *index = dump_writer_at(&writer, region(DUMP_REGION_STACK_INDEX)->offset);

	stack->frame_count = 1;
	stack->frames[0] = frame;
	arena->used += DUMP_STACK_BYTES(1);
	while (*index)
		index++;
	*index = DUMP_INDEX_WORD(1ull, at / DUMP_STACK_ALIGN);
}

static void poll_once(void)
{
	const struct target_memory *tm = &names->view.memory;

	java_names_poll(names, &writer, tm, false);
}

static void test_java_names_prove_a_method_by_the_age_of_its_frame(void **state)
{
	(void)state;
	record(0);
	unloaded = 1;
	poll_once(); /* it may have been another Method that was recorded */
	assert_int_equal(names->named, 0);
	assert_int_equal(names->gone, 1);
	record(1);
	unloaded = 2;
	poll_once(); /* what that was is known, and looked at once it may have changed */
	assert_int_equal(names->pending_count, 0);
	assert_int_equal(names->gone, 1);
	assert_int_equal(names->named, 1);
}

/*
 * memattach is held up: it names one frame in each poll. All of them are of a Method of which nobody knows what it was,
 * and each changes the age, until it is again that of the last one.
 */
static void test_java_names_believe_no_age_that_has_come_again(void **state)
{
	(void)state;
	dump_writer_java_age(&writer, 1);
	for (uint32_t i = 0; i <= JAVA_FRAME_AGE_MAX; i++)
		record(i);
	unloaded = 1;
	step = JAVA_POLL_NS / 4 * 3;
	for (uint32_t left = JAVA_FRAME_AGE_MAX; left > 0; left--) {
		poll_once();
		assert_int_equal(names->pending_count, left);
	}
	assert_int_equal(writer.own->java_age, 1);
	poll_once();
	assert_int_equal(names->pending_count, 0);
	assert_int_equal(names->named, 0);
	assert_int_equal(names->gone, JAVA_FRAME_AGE_MAX + 1);
}

/* memattach is held up; the one poll that it then has finds the process, but does not get to look, before that ends. */
static void test_java_names_do_not_outlast_a_poll_that_came_late(void **state)
{
	(void)state;
	step = 1;
	record(0);
	poll_once();
	assert_int_equal(names->named, 1);
	now += 6 * JAVA_HELD_UP_NS;
	unloaded = 1;
	names->rest_until_ns = now + JAVA_HELD_UP_NS;
	poll_once();
	assert_int_equal(names->named, 1);
	assert_true(java_names_ended(names, &writer));
	assert_int_equal(names->named, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_java_names_prove_a_method_by_the_age_of_its_frame, begin, end),
		cmocka_unit_test_setup_teardown(test_java_names_believe_no_age_that_has_come_again, begin, end),
		cmocka_unit_test_setup_teardown(test_java_names_do_not_outlast_a_poll_that_came_late, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
