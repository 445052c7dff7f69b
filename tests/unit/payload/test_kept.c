/* SPDX-License-Identifier: MIT */
/*
 * Hooks that keep registers (TRAMPOLINE_KEEPS). Every register that a called function may change is filled before the
 * call: the original must find them so, and the caller what the original has left in them, whatever the hook does.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "hook_fixture.h"
#include "trampolines.h"

#define BLOCK 0x700000u
#define SIZE 16u /* squared, it is still one of a pool */

#if defined(__x86_64__)
#include "kept_registers_x86_64.h"
#else
#include "kept_registers_aarch64.h"
#endif

/* The original notes what it finds, and leaves other values. */
struct registers kept_found, kept_left;
void kept_original(void);
/* Fills registers from *in, does what a detour does that leaves all to trampoline *data, stores them to *out. */
void kept_call(const struct registers *in, struct registers *out, const uint64_t *data);

static uint32_t flags;

static void add_keeping(void)
{
	static struct control_trampoline trampolines[2 * HOOK_COUNT];
	struct control_patch patch = { .trampoline_count = 2 * HOOK_COUNT, .trampolines = (uint64_t)trampolines };

	for (uint32_t i = 0; i < HOOK_COUNT; i++)
		trampolines[HOOK_COUNT + i] =
			(struct control_trampoline){ (uint64_t)kept_original, i, TRAMPOLINE_KEEPS | flags, 0 };
	assert_int_equal(memattach_control(CONTROL_PATCH, &patch), 0);
}

static uint64_t taken(void)
{
	return fixture_counter(&fixture, DUMP_COUNTER_samples_taken);
}

static void fill(struct registers *r, uint64_t seed)
{
	for (size_t i = 0; i < sizeof *r / sizeof(uint64_t); i++)
		((uint64_t *)r)[i] = seed + i * 0x0123456789abcdefull;
}

static void call_keeping(uint32_t hook, uint64_t seed)
{
	static uint64_t stored;
	const uint64_t *data =
		(const uint64_t *)trampoline_data(memattach_session.trampolines_address, HOOK_COUNT + hook);
	bool size_first = facts[hook].size == SIZE_ARG0 || facts[hook].size == SIZE_ARG0_X_ARG1;
	static const uint8_t number[4] = ARGUMENTS;
	struct registers in, out;

	fill(&in, seed);
	fill(&kept_left, ~seed);
	stored = BLOCK + seed;
	in.general[number[0]] = facts[hook].shape == SHAPE_OUT ? (uint64_t)&stored : size_first ? SIZE : BLOCK + seed;
	in.general[number[1]] = in.general[number[2]] = SIZE;
	if (facts[hook].shape == SHAPE_POOL_REALLOC || facts[hook].shape == SHAPE_POOL_FREE)
		in.general[number[1]] = BLOCK + seed; /* behind a context */
	in.general[number[3]] |= 0x20;                /* MAP_ANONYMOUS */
	kept_left.RESULT = facts[hook].shape == SHAPE_OUT ? 0 : BLOCK + seed;
	memset(&kept_found, 0, sizeof kept_found);
	kept_call(&in, &out, data);
	if (memcmp(&kept_found, &in, sizeof in))
		fail_msg("%s: the original finds other registers", facts[hook].name);
	if (memcmp(&kept_left, &out, sizeof out))
		fail_msg("%s: the caller finds other registers", facts[hook].name);
}

static bool allocates(uint32_t hook)
{
	return facts[hook].size != SIZE_NONE;
}

static void test_sampled_calls_keep_registers(void **state)
{
	(void)state;
	flags = 0;
	add_keeping();
	for (uint32_t hook = 0; hook < HOOK_COUNT; hook++) {
		uint64_t before = taken();
		for (unsigned i = 1; i <= 20; i++)
			call_keeping(hook, i * 64);
		assert_int_equal(taken() - before, allocates(hook) ? 20 : 0);
	}
}

static void test_outer_calls_keep_registers(void **state)
{
	(void)state;
	flags = TRAMPOLINE_OUTER;
	add_keeping();
	for (uint32_t hook = 0; hook < HOOK_COUNT; hook++) {
		uint64_t before = taken();
		for (unsigned i = 1; i <= 20; i++)
			call_keeping(hook, i * 64);
		assert_int_equal(taken() - before, allocates(hook) ? 20 : 0);
	}
}

/* With a larger interval some calls are sampled, whose arithmetic needs vector registers, and most are not. */
static void sample_some(enum place where)
{
	place = where;
	start(1000, true);
	flags = 0;
	add_keeping();
	for (unsigned i = 1; i <= 2000; i++)
		call_keeping(HOOK_malloc, i * 64), call_keeping(HOOK_calloc, i * 64), call_keeping(HOOK_free, i * 64);
	assert_in_range(taken(), 500, 3000);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_busy), 0);
	close_session(NULL);
}

static void test_some_calls_are_sampled(void **state)
{
	(void)state;
	for (enum place where = NEAR; where <= BEHIND; where++)
		sample_some(where);
}

/* What an inert trampoline does, and one in a forked child, where the switch is off. */
static void test_without_a_session_registers_are_kept(void **state)
{
	(void)state;
	flags = 0;
	add_keeping();
	__atomic_store_n((uint32_t *)memattach_session.switch_address, 0, __ATOMIC_RELAXED);
	for (uint32_t hook = 0; hook < HOOK_COUNT; hook++)
		call_keeping(hook, 64);
	fixture_inert(&memattach_session);
	for (uint32_t hook = 0; hook < HOOK_COUNT; hook++)
		call_keeping(hook, 128);
	assert_int_equal(taken(), 0);
}

/* A function that is called in the original's stead would leave other registers. */
static void test_a_quiet_function_is_refused(void **state)
{
	struct control_trampoline trampolines[HOOK_COUNT + 1] = { 0 };
	struct control_patch patch = { .trampoline_count = HOOK_COUNT + 1, .trampolines = (uint64_t)trampolines };

	(void)state;
	trampolines[HOOK_COUNT] =
		(struct control_trampoline){ (uint64_t)kept_original, HOOK_new, TRAMPOLINE_KEEPS, BLOCK };
	assert_int_equal(memattach_control(CONTROL_PATCH, &patch), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT_IN_EACH_STATE(test_sampled_calls_keep_registers),
		EXACT_IN_EACH_STATE(test_outer_calls_keep_registers),
		cmocka_unit_test(test_some_calls_are_sampled),
		EXACT(test_without_a_session_registers_are_kept),
		EXACT(test_a_quiet_function_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
