/* SPDX-License-Identifier: MIT */
/* Which calls the hooks take: by the rate, which may change, by the countdown, and by the filter for frees. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tables/filter.h"
#include "trampoline_setup.h"
#include "hook_fixture.h"
#include "thread_state.h"

static int open_rate(void **state)
{
	(void)state;
	start(1000, true);
	return 0;
}

/* What the stacks' sums say was allocated: bytes, count, and the variances of both. */
static void sums(double sum[4])
{
	memset(sum, 0, 4 * sizeof(*sum));
	for (uint32_t i = 0; i < fixture.dump->region_count; i++) {
		const struct dump_region *region = &fixture.dump->regions[i];
		const uint64_t *words =
			(const uint64_t *)(const void *)((const uint8_t *)fixture.dump + region->offset);

		for (uint64_t k = 0; region->kind == DUMP_REGION_STACK_INDEX && k < region->entries; k++) {
			const struct dump_stack *stack = fixture_stack(&fixture, DUMP_INDEX_REFERENCE(words[k]));

			sum[0] += stack ? (double)stack->taken_bytes + stack->excess_bytes : 0;
			sum[1] += stack ? (double)stack->taken_count + stack->excess_count : 0;
			sum[2] += stack ? stack->variance_bytes : 0;
			sum[3] += stack ? stack->variance_count : 0;
		}
	}
}

/* The rate changes in the middle: each record carries the rate that it was drawn with, the estimate stays right. 4.5
 * standard errors. */
static void check_rate_changes(void (*order)(uint64_t rate))
{
	static const uint64_t rates[] = { 500, 20000, 3000, 500000, 1000 };
	double truth = 0, sum[4];
	uint32_t met = 0;

	for (uint64_t i = 0; i < 1000000; i++) {
		uint64_t size = i % 997 ? i % 97 : 30000;

		if (i % 5000 == 0)
			order(rates[i / 5000 % 5]);
		answer = 0x100000 + 64 * (i % 20000);
		call(HOOK_malloc, size, 0, 0, 0, 0, 0);
		call(HOOK_free, answer, 0, 0, 0, 0, 0);
		truth += (double)size;
	}
	sums(sum);
	assert_true(fabs(sum[0] - truth) < 4.5 * sqrt(sum[2]));
	assert_true(fabs(sum[1] - 1000000) < 4.5 * sqrt(sum[3]));
	assert_true(sqrt(sum[2]) < truth / 10); /* most of it from the rate 500000 */
	for (int k = 0; k < 5; k++) {
		for (uint64_t i = 0; i < 2000; i++) {
			struct dump_history_record past;

			if (!fixture_history(&fixture, i, &past) || past.rate_bytes != rates[k])
				continue;
			met |= 1u << k;
			break;
		}
	}
	assert_true((met & 21) == 21); /* those with many samples */
}

/* Trampoline and hook, or the hook of munmap after it, let those frees pass that filter.c says are of no sample, and no
 * others. Half of those that one counter knows are not known by both. */
static void test_hooks_ask_the_filter(void **state)
{
	static const uint32_t hooks[] = { HOOK_free, HOOK_munmap };
	uint64_t known = 0, maybe = 0;

	(void)state;
	for (uint64_t i = 0; i < 20000; i++)
		filter_add(0x7f0000000000 + i * 4048);
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t address = i % 2 ? 0x7f0000000000 + i * 4048 : 0x560000000000 + i * 592;

		maybe += i % 2 == 0 && filter_maybe(address);
		for (unsigned k = 0; k < 2; k++) {
			uint64_t before = fixture_counter(&fixture, DUMP_COUNTER_filter_hits);
			uint64_t of = k ? address & -4096ull : address; /* mappings begin with a page */

			call(hooks[k], of, 1, 0, 0, 0, 0);
			assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_filter_hits) - before,
			                 filter_maybe(of));
			known += k ? 0 : filter_maybe(of);
		}
	}
	assert_int_equal(known, 10000 + maybe);
	/* 40 000 marks on 65 536 counters: 0.46 of them are not 0, so 0.26 of the others' frees meet one and a second
	 * one; 0.457 the first. */
	assert_true(maybe > 1000 && maybe < 3600);
}

static int open_least(void **state)
{
	(void)state;
	start(500, true);
	return 0;
}

static void test_rate_in_the_header_keeps_the_estimate(void **state)
{
	(void)state;
	check_rate_changes(order_rate);
}

static void test_lost_owners_and_another_rate_keep_the_estimate(void **state)
{
	(void)state;
	check_rate_changes(order_at_once);
}

/* Who can write to the dump cannot have more samples taken than the session asked for, nor break the countdown. */
static void test_rate_in_the_header_is_not_trusted(void **state)
{
	static const uint64_t wild[] = { 0, 1, 499, UINT64_MAX, 1ull << 32, 1ull << 63 };

	(void)state;
	for (int k = 0; k < 6; k++) {
		uint64_t taken = fixture_counter(&fixture, DUMP_COUNTER_samples_taken);

		order_rate(wild[k]);
		for (uint64_t i = 0; i < 20000; i++) {
			answer = 0x100000 + 64 * i;
			call(HOOK_malloc, 50, 0, 0, 0, 0, 0);
			call(HOOK_free, answer, 0, 0, 0, 0, 0);
		}
		taken = fixture_counter(&fixture, DUMP_COUNTER_samples_taken) - taken;
		assert_true(taken > 1700 && taken < 2110); /* 1903 expected, standard deviation 42 */
	}
}

/* From every allocation to samples, and back: what was drawn with 1 has the weight 1. */
static void test_rate_in_the_header_ends_exactness(void **state)
{
	double sum[4];

	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		order_rate(i / 20000 % 2 ? 1000 : 1);
		answer = 0x100000 + 64 * (i % 20000);
		call(HOOK_malloc, 100, 0, 0, 0, 0, 0);
		call(HOOK_free, answer, 0, 0, 0, 0, 0);
	}
	sums(sum);
	assert_true(fabs(sum[0] - 1e7) < 4.5 * sqrt(sum[2]));
	assert_true(sum[2] > 0);
	assert_true(fixture_counter(&fixture, DUMP_COUNTER_samples_taken) > 60000);
	assert_true(fixture_counter(&fixture, DUMP_COUNTER_samples_taken) < 66000);
	assert_int_equal(fixture_live_count(&fixture), 0);
}

/* Huge sizes do not upset the countdown. */
static void test_huge_sizes_keep_the_countdown(void **state)
{
	const uint64_t huge[] = { UINT64_MAX, 1ull << 63, 3ull << 62, (1ull << 63) - 1 };
	uint64_t before;

	(void)state;
	for (int i = 0; i < 400; i++) {
		answer = 0;
		call(HOOK_malloc, huge[i % 4], 0, 0, 0, 0, 0);
		call(HOOK_calloc, huge[i % 4], 1, 0, 0, 0, 0);
	}
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), 0);
	before = fixture_counter(&fixture, DUMP_COUNTER_samples_taken);
	for (int i = 0; i < 10000; i++) {
		answer = 0x1000 + 16 * (uint64_t)i;
		call(HOOK_malloc, 1000, 0, 0, 0, 0, 0);
	}
	/* 6321 expected, standard deviation 48 */
	assert_true(fixture_counter(&fixture, DUMP_COUNTER_samples_taken) - before > 6000);
	assert_true(fixture_counter(&fixture, DUMP_COUNTER_samples_taken) - before < 6600);
}

/* A hook that was left between the charge and the draw, by a signal handler's siglongjmp, must not silence its thread
 * for ever. */
static void test_a_distance_below_zero_is_seen(void **state)
{
	static const uint32_t hooks[] = { HOOK_malloc, HOOK_calloc };

	(void)state;
	order_at_once(1 << 20);
	answer = 0x5000;
	call(HOOK_malloc, 1, 0, 0, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		uint64_t taken = fixture_counter(&fixture, DUMP_COUNTER_samples_taken);

		trampolines_shared->near.remaining = (uint64_t)-1000;
		call(hooks[i], 1, 1, 0, 0, 0, 0);
		assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), taken + 1);
		assert_true(trampolines_shared->near.remaining < 1ull << 40);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT(test_a_distance_below_zero_is_seen),
		cmocka_unit_test_setup_teardown(test_hooks_ask_the_filter, open_rate, close_session),
		cmocka_unit_test_setup_teardown(test_rate_in_the_header_keeps_the_estimate, open_least, close_session),
		cmocka_unit_test_setup_teardown(test_lost_owners_and_another_rate_keep_the_estimate, open_least,
		                                close_session),
		cmocka_unit_test_setup_teardown(test_rate_in_the_header_is_not_trusted, open_least, close_session),
		EXACT(test_rate_in_the_header_ends_exactness),
		cmocka_unit_test_setup_teardown(test_huge_sizes_keep_the_countdown, open_rate, close_session),
	};

	return cmocka_run_group_tests_name("hook_rates", tests, NULL, NULL);
}
