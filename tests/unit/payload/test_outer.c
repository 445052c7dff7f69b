/* SPDX-License-Identifier: MIT */
/* Functions that pass on to others which are hooked, too (TRAMPOLINE_OUTER): one block counts once, whoever was called.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "hook_fixture.h"
#include "trampolines.h"

#define OUTER_MALLOC HOOK_COUNT
#define OUTER_REALLOC (HOOK_COUNT + 1)
#define TRAMPOLINES (HOOK_COUNT + 2)
#define BLOCK 0x700000u

typedef uint64_t (*hooked)(uint64_t, uint64_t);

enum way { ALONE, PASSES_ON, FREES_ANOTHER, THROWS };
static enum way way;
static jmp_buf caught;
static uint64_t block = BLOCK;

static uint64_t outer(uint64_t a, uint64_t b)
{
	switch (way) {
	case PASSES_ON: call(HOOK_malloc, b ? b : a, 0, 0, 0, 0, 0); break;
	case FREES_ANOTHER: call(HOOK_free, BLOCK + 64, 0, 0, 0, 0, 0); break;
	case THROWS: longjmp(caught, 1);
	default: break;
	}
	return block;
}

static void add_outer(void)
{
	struct control_trampoline trampolines[TRAMPOLINES] = { 0 };
	struct control_patch patch = { .trampoline_count = TRAMPOLINES, .trampolines = (uint64_t)trampolines };

	trampolines[OUTER_MALLOC] = (struct control_trampoline){ (uint64_t)outer, HOOK_malloc, TRAMPOLINE_OUTER, 0 };
	trampolines[OUTER_REALLOC] = (struct control_trampoline){ (uint64_t)outer, HOOK_realloc, TRAMPOLINE_OUTER, 0 };
	assert_int_equal(memattach_control(CONTROL_PATCH, &patch), 0);
	way = PASSES_ON;
	answer = block = BLOCK;
}

static int open_exact_outer(void **state)
{
	open_exact(state);
	add_outer();
	return 0;
}

static int open_exact_outer_behind(void **state)
{
	open_exact_behind(state);
	add_outer();
	return 0;
}

static int open_rate(void **state)
{
	(void)state;
	start(1000, true);
	add_outer();
	return 0;
}

static uint64_t call_outer(uint32_t which, uint64_t a, uint64_t b)
{
	uint64_t at = memattach_session.trampolines_address + (uint64_t)which * TRAMPOLINE_CODE_BYTES;

	return ((hooked)(at + TRAMPOLINE_OTHER))(a, b);
}

static uint64_t taken(void)
{
	return fixture_counter(&fixture, DUMP_COUNTER_samples_taken);
}

static void test_only_the_outer_call_is_recorded(void **state)
{
	(void)state;
	assert_int_equal(call_outer(OUTER_MALLOC, 100, 0), BLOCK);
	assert_int_equal(taken(), 1);
	call(HOOK_free, BLOCK, 0, 0, 0, 0, 0);
	assert_int_equal(call_outer(OUTER_REALLOC, 0, 200), BLOCK);
	assert_int_equal(taken(), 2);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
	call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	assert_int_equal(taken(), 3);
}

static void test_an_inner_free_of_another_block_counts(void **state)
{
	(void)state;
	answer = BLOCK + 64;
	call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	way = FREES_ANOTHER;
	call_outer(OUTER_MALLOC, 100, 0);
	assert_int_equal(taken(), 2);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_freed), 1);
}

/* What is called next from little below would look like an inner call, but for the word that the mark remembers. */
__attribute__((noinline)) static void call_from_below(void)
{
	volatile uint64_t room[256];

	for (unsigned i = 0; i < 256; i++)
		room[i] = i;
	call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	room[1] = room[0];
}

static void test_a_mark_that_was_left_hides_nothing(void **state)
{
	(void)state;
	way = THROWS;
	if (!setjmp(caught))
		call_outer(OUTER_MALLOC, 100, 0);
	uint64_t before = taken();
	call_from_below();
	assert_int_equal(taken(), before + 1);
	way = PASSES_ON;
	call_outer(OUTER_MALLOC, 100, 0);
	call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	assert_int_equal(taken(), before + 3);
}

/* Each is a sample with 1 - exp(-size / rate), whether the inner call is charged too or not. 5 standard errors. */
static void test_sampling_is_as_without_inner_calls(void **state)
{
	const double size = 64, rate = 1000, calls = 300000, p = 1 - exp(-size / rate);

	(void)state;
	for (way = ALONE; way <= PASSES_ON; way++) {
		uint64_t before = taken();
		for (uint64_t i = 0; i < (uint64_t)calls; i++) {
			block = answer = BLOCK + 64 * (i % 512);
			call_outer(i % 2 ? OUTER_MALLOC : OUTER_REALLOC, i % 2 ? 64 : 0, 64);
			call(HOOK_free, block, 0, 0, 0, 0, 0);
		}
		assert_true(fabs((double)(taken() - before) - calls * p) < 5 * sqrt(calls * p * (1 - p)));
	}
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_only_the_outer_call_is_recorded, open_exact_outer, close_session),
		{ "test_only_the_outer_call_is_recorded_behind", test_only_the_outer_call_is_recorded,
		  open_exact_outer_behind, close_session, NULL },
		cmocka_unit_test_setup_teardown(test_an_inner_free_of_another_block_counts, open_exact_outer,
		                                close_session),
		cmocka_unit_test_setup_teardown(test_a_mark_that_was_left_hides_nothing, open_exact_outer,
		                                close_session),
		cmocka_unit_test_setup_teardown(test_sampling_is_as_without_inner_calls, open_rate, close_session),
	};

	return cmocka_run_group_tests_name("outer", tests, NULL, NULL);
}
