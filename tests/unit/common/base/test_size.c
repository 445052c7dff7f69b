/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"

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
		assert_int_equal(size_parse_percent(good[i].text, &fraction), 0);
		assert_true(fraction == good[i].fraction);
	}
	fraction = 7;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(size_parse_percent(bad[i], &fraction), -EINVAL);
	assert_true(fraction == 7);
}

static void test_size_parse_knows_binary_multiples(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "4096", 4096 },
		     { "512k", 512 << 10 },
		     { "1MiB", 1 << 20 },
		     { "64kb", 64 << 10 },
		     { "64KiB", 64 << 10 },
		     { "64Kb", 64 << 10 },
		     { "1.5M", 3 << 19 },
		     { "2G", 2ull << 30 },
		     { "1t", 1ull << 40 },
		     { "0.1k", 102 },
		     { "12B", 12 },
		     { "18446744073709551615", UINT64_MAX },
		     { "0", 0 } };
	static const char *const bad[] = { "",     "-1",   "1x",   "1e3", "0x10", "1.5", "1.5.5k", ".5k",
		                           "64 k", "64kk", "64ik", "k",   "nan",  "inf", "64kBs" };
	uint64_t bytes = 7;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(size_parse(good[i].text, &bytes, &e), 0);
		assert_int_equal(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(size_parse(bad[i], &bytes, &e), -EINVAL);
	assert_non_null(strstr(e.text, "64KiB or 1.5M"));
	assert_int_equal(size_parse("16777216T", &bytes, &e), -ERANGE);
	assert_int_equal(size_parse("18446744073709551616", &bytes, &e), -ERANGE);
	assert_int_equal(bytes, 0);
}

static void test_time_parse_sums_up_parts(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = { { "1.5", 1500 },     { "250ms", 250 },       { "1m30s", 90000 },  { "1.5h", 5400000 },
		     { "2d", 172800000 }, { "1h250ms", 3600250 }, { "1m0.5s", 60500 }, { "30", 30000 } };
	static const char *const bad[] = { "",   "5 s", "s",   "1m30", "30s1m", "1m1m", "1m 30s",
		                           "1M", "-1",  "1e3", "0x1s", "1..5s", "nan",  "5sec" };
	uint64_t ns = 7;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(size_parse_time(good[i].text, &ns, &e), 0);
		assert_int_equal(ns, good[i].ms * 1000000);
	}
	ns = 7;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(size_parse_time(bad[i], &ns, &e), -EINVAL);
	assert_non_null(strstr(e.text, "1m30s"));
	assert_int_equal(size_parse_time("0", &ns, &e), -ERANGE);
	assert_int_equal(size_parse_time("0m0s", &ns, &e), -ERANGE);
	assert_int_equal(size_parse_time("9999999d", &ns, &e), -ERANGE);
	assert_int_equal(ns, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percent_parse_gives_a_fraction),
		cmocka_unit_test(test_size_parse_knows_binary_multiples),
		cmocka_unit_test(test_time_parse_sums_up_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
