/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "size.h"

static void test_percent_parse_gives_a_fraction(void **state)
{
	static const struct {
		const char *text;
		double fraction;
	} good[] = { { "95", 0.95 }, { "0.5%", 0.005 }, { "1e2", 1 }, { "-3%", -0.03 }, { "0", 0 }, { "1000", 10 } };
	static const char *const bad[] = { "", "%", "5%%", "5 %", "5x", "nan", "inf", "1e999", "1e-999", "off" };
	double fraction;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(percent_parse(good[i].text, &fraction), 0);
		assert_true(fraction == good[i].fraction);
	}
	fraction = 7;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(percent_parse(bad[i], &fraction), -EINVAL);
	assert_true(fraction == 7);
}

static void test_size_parse_knows_binary_multiples(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "4096", 4096 }, { "512k", 512 << 10 }, { "1MiB", 1 << 20 }, { "2G", 2ull << 30 }, { "0", 0 } };
	uint64_t bytes = 7;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(size_parse(good[i].text, &bytes, &e), 0);
		assert_int_equal(bytes, good[i].bytes);
	}
	assert_int_equal(size_parse("-1", &bytes, &e), -EINVAL);
	assert_int_equal(size_parse("1x", &bytes, &e), -EINVAL);
	assert_int_equal(size_parse("16777216T", &bytes, &e), -ERANGE);
	assert_int_equal(bytes, 0);
}

static void test_time_parse_is_in_seconds_without_a_unit(void **state)
{
	uint64_t ns = 7;
	struct err e;

	(void)state;
	assert_int_equal(time_parse("1.5", &ns, &e), 0);
	assert_int_equal(ns, 1500000000);
	assert_int_equal(time_parse("250ms", &ns, &e), 0);
	assert_int_equal(ns, 250000000);
	assert_int_equal(time_parse("0", &ns, &e), -ERANGE);
	assert_int_equal(time_parse("5 s", &ns, &e), -EINVAL);
	assert_int_equal(ns, 250000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percent_parse_gives_a_fraction),
		cmocka_unit_test(test_size_parse_knows_binary_multiples),
		cmocka_unit_test(test_time_parse_is_in_seconds_without_a_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
