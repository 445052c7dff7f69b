/* SPDX-License-Identifier: MIT */
/* The filter of free: what it knows, how often it is wrong, and how much memory it touches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tables/filter.h"

#define COUNTERS (1u << 16)
#define HEAP 0x55d0c0a00010ull
#define DEFAULT_RATE (512u << 10)

static uint8_t counters[COUNTERS] __attribute__((aligned(FILTER_LINE_BYTES)));

static void open_filter(uint64_t rate_bytes)
{
	memset(counters, 0, sizeof counters);
	filter_init(counters, COUNTERS, rate_bytes);
}

static void test_a_counter_sticks_at_its_limit(void **state)
{
	(void)state;
	open_filter(64);
	for (int i = 0; i < 300; i++)
		filter_add(0x5000);
	for (int i = 0; i < 300; i++)
		filter_remove(0x5000);
	assert_true(filter_maybe(0x5000));
	filter_remove(0x123450); /* was never there: no underflow */
	assert_false(filter_maybe(0x123450));
}

/* Of a thousand samples some 1.5 % of all other addresses share the first counter: 1 % of those share the second, too.
 */
static void test_an_address_is_known_by_two_counters(void **state)
{
	uint64_t maybe = 0;

	(void)state;
	open_filter(64);
	for (uint64_t i = 1; i <= 1000; i++)
		filter_add(0x10000000 + i * 9136);
	for (uint64_t i = 1; i <= 1000; i++)
		assert_true(filter_maybe(0x10000000 + i * 9136));
	for (uint64_t i = 1; i <= 100000; i++)
		maybe += filter_maybe(0x7f0000000000 + i * 272);
	assert_true(maybe < 300);
	for (uint64_t i = 1; i <= 1000; i++)
		filter_remove(0x10000000 + i * 9136);
	for (uint32_t i = 0; i <= filter_mask; i++)
		assert_int_equal(counters[i], 0);
}

/* Nothing is spared where every block is recorded, and nothing is counted. */
static void test_all_is_maybe_in_exact_mode(void **state)
{
	(void)state;
	open_filter(1);
	filter_make_exact();
	assert_true(filter_maybe(0x123450));
	filter_add(0x123450);
	filter_remove(0x123450);
	filter_remove(0x123450);
	for (uint64_t a = 0x1000; a < 0x100000; a += 16)
		assert_true(filter_maybe(a));
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/*
 * Blocks of 48 bytes beside each other, sampled with the probability that they have at the rate, up to 3 000 samples.
 * How many of 1 000 of the others come to the search in vain.
 */
static double vain_of_1000(uint64_t rate_bytes)
{
	const uint64_t block = 48, blocks = rate_bytes * 3000 / block < 1000000 ? rate_bytes * 3000 / block : 1000000;
	uint64_t x = 88172645463325252ull, vain = 0, others = 0, samples = 0;
	static bool sampled[1000000];

	open_filter(rate_bytes);
	for (uint64_t i = 0; i < blocks; i++) {
		sampled[i] = next_random(&x) % rate_bytes < block && samples < 3000;
		if (sampled[i]) {
			filter_add(HEAP + i * block);
			samples++;
		}
	}
	for (uint64_t i = 0; i < blocks; i++) {
		others += !sampled[i];
		vain += !sampled[i] && filter_maybe(HEAP + i * block);
	}
	assert_true(samples > 20 && others > 1000);
	return (double)vain * 1000 / (double)others;
}

static void test_few_searches_are_in_vain_at_any_rate(void **state)
{
	static const uint64_t rates[] = { 200, 1000, 4096, 65536, DEFAULT_RATE, 2 << 20 };

	(void)state;
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
		double vain = vain_of_1000(rates[i]);
		if (vain > 10)
			fail_msg("rate %lu: %.1f of 1000", (unsigned long)rates[i], vain);
	}
}

/* All addresses of a heap of 1 MiB lead to a few lines, and those of 1 GiB to all. */
static uint32_t lines_of(uint64_t start, uint64_t bytes, uint64_t step)
{
	uint32_t lines = 0;

	open_filter(DEFAULT_RATE);
	for (uint64_t at = 0; at < bytes; at += step)
		filter_add(start + at);
	for (uint32_t line = 0; line < COUNTERS; line += FILTER_LINE_BYTES) {
		bool used = false;
		for (uint32_t i = 0; i < FILTER_LINE_BYTES; i++)
			used |= counters[line + i] != 0;
		lines += used;
	}
	return lines;
}

static void test_blocks_near_each_other_share_a_line(void **state)
{
	(void)state;
	assert_in_range(lines_of(HEAP, 1 << 20, 32), 2, 6);
	assert_int_equal(lines_of(0x7f3211000010, 1 << 30, 4112), COUNTERS / FILTER_LINE_BYTES);
}

/* What is 64 MiB or 1 GiB apart, as the arenas of threads are, meets no more than it must: of 256, less than 10. */
static void test_arenas_do_not_share_counters(void **state)
{
	static const uint64_t apart[] = { 1 << 20, 64 << 20, 1 << 30 };

	(void)state;
	for (size_t a = 0; a < sizeof apart / sizeof *apart; a++) {
		unsigned maybe = 0;
		open_filter(DEFAULT_RATE);
		for (uint64_t i = 0; i < 256; i++) {
			maybe += filter_maybe(0x7f0000000030 + i * apart[a]);
			filter_add(0x7f0000000030 + i * apart[a]);
		}
		assert_in_range(maybe, 0, 9);
	}
}

/* An immediate operand of a detour, which the processor extends by its sign. */
static void test_multipliers_are_odd_and_positive(void **state)
{
	(void)state;
	for (uint64_t rate = 1; rate <= UINT32_MAX; rate = rate * 3 + 1) {
		open_filter(rate);
		assert_true(filter_multiplier & 1);
		assert_in_range(filter_multiplier, FILTER_COARSEST, INT32_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_counter_sticks_at_its_limit),
		cmocka_unit_test(test_an_address_is_known_by_two_counters),
		cmocka_unit_test(test_all_is_maybe_in_exact_mode),
		cmocka_unit_test(test_few_searches_are_in_vain_at_any_rate),
		cmocka_unit_test(test_blocks_near_each_other_share_a_line),
		cmocka_unit_test(test_arenas_do_not_share_counters),
		cmocka_unit_test(test_multipliers_are_odd_and_positive),
	};

	return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
