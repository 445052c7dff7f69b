/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "heap_simulation.h"
#include "number.h"

static void check(double value)
{
	char want[400], got[NUMBER_TEXT + 1];

	got[number_double(value, got)] = 0;
	if (value == floor(value) && fabs(value) < 9007199254740992.0) {
		snprintf(want, sizeof want, "%.0f", value);
	} else {
		snprintf(want, sizeof want, "%.15g", value);
		if (strtod(want, NULL) != value)
			snprintf(want, sizeof want, "%.17g", value);
	}
	assert_string_equal(got, want);
	assert_true(strtod(got, NULL) == value);
}

static void check_around(double value)
{
	check(value);
	check(-value);
	check(nextafter(value, INFINITY));
	check(nextafter(value, 0));
}

static void test_doubles_as_printf_writes_them(void **state)
{
	struct random_source random = { 7 };

	(void)state;
	check_around(0);
	check_around(DBL_MIN);
	check_around(0x1p53);
	check(DBL_MAX);
	/* Powers of ten, and what rounds up to them; numbers that lie half-way. */
	for (int i = -320; i <= 308; i++) {
		check_around(pow(10, i));
		check_around(pow(10, i) * (1 - 1e-14));
		check_around(pow(10, i) * (1 - 4e-16));
	}
	for (int i = -1000; i < 1000; i++)
		check_around(ldexp(1, i) + (i > 0 && i < 50 ? 0.5 : 0));
	for (int i = 0; i < 60000; i++) {
		check(random_unit(&random));
		check(exp(60 * (random_unit(&random) - 0.5)));
		check(floor(1e6 * random_unit(&random)) / 1000);
		check(floor(random_unit(&random) * 0x1p52) / 4);
	}
	/* Any bits. */
	for (int i = 0; i < 40000; i++) {
		uint64_t bits = random_next(&random);
		double value;
		memcpy(&value, &bits, sizeof value);
		if (isfinite(value))
			check(value);
	}
}

static void test_integers(void **state)
{
	static const uint64_t values[] = { 0, 1, 9, 10, 15, 16, 255, 256, 99999, UINT32_MAX, 1ull << 63, UINT64_MAX };
	char want[40], got[NUMBER_TEXT + 1];

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		got[number_decimal(values[i], got)] = 0;
		snprintf(want, sizeof want, "%llu", (unsigned long long)values[i]);
		assert_string_equal(got, want);
		got[number_hex(values[i], got)] = 0;
		snprintf(want, sizeof want, "0x%llx", (unsigned long long)values[i]);
		assert_string_equal(got, want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doubles_as_printf_writes_them),
		cmocka_unit_test(test_integers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
