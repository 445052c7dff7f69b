/* SPDX-License-Identifier: MIT */
/* CPython's allocator for objects (SHAPE_POOL): what it serves from its arenas counts there, what it passes on counts
 * in malloc, and each block counts once, whoever frees it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "hook_fixture.h"
#include "payload.h"

#define CONTEXT 0x1234u
#define ARENA 0x700000u
#define HEAP 0x900000u

static uint64_t arena, heap; /* where the next block of each is */

static uint64_t from_malloc(uint64_t size)
{
	answer = heap += 4096;
	return call(HOOK_malloc, size, 0, 0, 0, 0, 0);
}

static uint64_t pool_malloc(uint64_t context, uint64_t size)
{
	assert_int_equal(context, CONTEXT);
	return size - 1 < POOL_MAX ? arena += POOL_MAX : from_malloc(size);
}

static uint64_t pool_calloc(uint64_t context, uint64_t count, uint64_t size)
{
	return pool_malloc(context, count * size);
}

static void pool_free(uint64_t context, uint64_t block)
{
	assert_int_equal(context, CONTEXT);
	if (block > HEAP)
		call(HOOK_free, block, 0, 0, 0, 0, 0);
}

/* As obmalloc.c: a block of malloc stays one. */
static uint64_t pool_realloc(uint64_t context, uint64_t block, uint64_t size)
{
	if (block > HEAP) {
		answer = heap += 4096;
		return call(HOOK_realloc, block, size, 0, 0, 0, 0);
	}
	uint64_t moved = pool_malloc(context, size);
	pool_free(context, block);
	return moved;
}

static void add_pool(void)
{
	struct control_trampoline trampolines[HOOK_COUNT + 4] = {
		[HOOK_COUNT] = { (uint64_t)pool_malloc, HOOK_python_malloc, 0, 0 },
		[HOOK_COUNT + 1] = { (uint64_t)pool_calloc, HOOK_python_calloc, 0, 0 },
		[HOOK_COUNT + 2] = { (uint64_t)pool_realloc, HOOK_python_realloc, TRAMPOLINE_OUTER, 0 },
		[HOOK_COUNT + 3] = { (uint64_t)pool_free, HOOK_python_free, TRAMPOLINE_OUTER, 0 },
	};
	struct control_patch patch = { .trampoline_count = HOOK_COUNT + 4, .trampolines = (uint64_t)trampolines };

	assert_int_equal(memattach_control(CONTROL_PATCH, &patch), 0);
	arena = ARENA;
	heap = HEAP;
}

static int open_exact_pool(void **state)
{
	open_exact(state);
	add_pool();
	return 0;
}

static int open_exact_pool_behind(void **state)
{
	open_exact_behind(state);
	add_pool();
	return 0;
}

static int open_rate_pool(void **state)
{
	(void)state;
	start(1000, true);
	add_pool();
	return 0;
}

static uint64_t pool(uint32_t hook, uint64_t a, uint64_t b)
{
	uint32_t at = HOOK_COUNT + hook - HOOK_python_malloc;
	uint64_t code = trampoline_address(memattach_session.trampolines_address, at, hook);

	return ((uint64_t(*)(uint64_t, uint64_t, uint64_t))code)(CONTEXT, a, b);
}

static void expect(uint64_t block, uint32_t hook, uint64_t size, uint64_t usable)
{
	struct dump_live_record record;

	assert_true(fixture_live(&fixture, (void *)block, &record));
	assert_int_equal(record.hook, hook);
	assert_int_equal(record.size, size);
	assert_int_equal(record.usable, usable);
}

static void test_small_blocks_count_in_the_pool(void **state)
{
	(void)state;
	expect(pool(HOOK_python_malloc, 1, 0), HOOK_python_malloc, 1, 16);
	expect(pool(HOOK_python_malloc, POOL_MAX, 0), HOOK_python_malloc, POOL_MAX, POOL_MAX);
	expect(pool(HOOK_python_calloc, 7, 7), HOOK_python_calloc, 49, 64);
	expect(pool(HOOK_python_realloc, 0, 30), HOOK_python_realloc, 30, 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), 4);
}

static void test_other_blocks_count_in_malloc(void **state)
{
	const uint64_t sizes[] = { 0, POOL_MAX + 1, 100000 };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		expect(pool(HOOK_python_malloc, sizes[i], 0), HOOK_malloc, sizes[i], 0);
	expect(pool(HOOK_python_calloc, 27, 19), HOOK_malloc, 513, 0);
	expect(pool(HOOK_python_calloc, 0, 9), HOOK_malloc, 0, 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), 5);
}

static void test_each_block_is_freed_once(void **state)
{
	(void)state;
	pool(HOOK_python_free, pool(HOOK_python_malloc, 10, 0), 0);
	pool(HOOK_python_free, pool(HOOK_python_malloc, 1000, 0), 0);
	pool(HOOK_python_free, 0, 0);
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture_history_count(&fixture), 2);
	assert_int_equal(fixture.dump->frees_unseen, 0);
	pool(HOOK_python_free, ARENA + 16, 0); /* from before the session */
	pool(HOOK_python_free, HEAP + 16, 0);
	assert_int_equal(fixture.dump->frees_unseen, 2);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
}

/* Small to large, large to small, and both in their own place: the new block has one record, the old one none. */
static void test_realloc_across(void **state)
{
	(void)state;
	uint64_t block = pool(HOOK_python_malloc, 100, 0);

	for (unsigned i = 0; i < 4; i++) {
		const uint64_t sizes[] = { 400, 4000, 5000, 50 };
		uint64_t next = pool(HOOK_python_realloc, block, sizes[i]);

		assert_false(fixture_live(&fixture, (void *)block, NULL));
		expect(next, HOOK_python_realloc, sizes[i], 0);
		assert_int_equal(fixture_live_count(&fixture), 1);
		assert_int_equal(fixture_history_count(&fixture), i + 1);
		block = next;
	}
	pool(HOOK_python_free, block, 0);
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture.dump->frees_unseen, 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), 5);
}

/* Whatever the way, a block of s bytes is a sample with 1 - exp(-s / rate). 5 standard errors. */
static void test_sampling_is_the_same_everywhere(void **state)
{
	const struct {
		uint32_t hook;
		uint64_t a, b, size;
	} ways[] = {
		{ HOOK_python_malloc, 64, 0, 64 },    { HOOK_python_malloc, 600, 0, 600 },
		{ HOOK_python_calloc, 8, 8, 64 },     { HOOK_python_calloc, 100, 6, 600 },
		{ HOOK_python_realloc, 0, 64, 64 },   { HOOK_python_realloc, HEAP + 16, 64, 64 },
		{ HOOK_python_realloc, 0, 600, 600 }, { HOOK_python_malloc, 0, 0, 1 },
	};
	const double calls = 100000, rate = 1000;

	(void)state;
	for (unsigned way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
		double p = 1 - exp(-(double)ways[way].size / rate);
		uint64_t before = fixture_counter(&fixture, DUMP_COUNTER_samples_taken);

		for (uint64_t i = 0; i < (uint64_t)calls; i++) {
			arena = ARENA + i % 64 * POOL_MAX;
			heap = HEAP + i % 64 * 4096;
			pool(HOOK_python_free, pool(ways[way].hook, ways[way].a, ways[way].b), 0);
		}
		double taken = (double)(fixture_counter(&fixture, DUMP_COUNTER_samples_taken) - before);
		if (fabs(taken - calls * p) >= 5 * sqrt(calls * p * (1 - p)))
			fail_msg("way %u: %.0f samples, %.0f expected", way, taken, calls * p);
	}
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
}

#define POOL_TEST(test, open) cmocka_unit_test_setup_teardown(test, open, close_session)
#define BEHIND_TEST(test)                                                                                              \
	{                                                                                                              \
#test "_behind", test, open_exact_pool_behind, close_session, NULL                                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		POOL_TEST(test_small_blocks_count_in_the_pool, open_exact_pool),
		BEHIND_TEST(test_small_blocks_count_in_the_pool),
		POOL_TEST(test_other_blocks_count_in_malloc, open_exact_pool),
		BEHIND_TEST(test_other_blocks_count_in_malloc),
		POOL_TEST(test_each_block_is_freed_once, open_exact_pool),
		POOL_TEST(test_realloc_across, open_exact_pool),
		BEHIND_TEST(test_realloc_across),
		POOL_TEST(test_sampling_is_the_same_everywhere, open_rate_pool),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
