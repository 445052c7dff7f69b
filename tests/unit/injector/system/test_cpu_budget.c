/* SPDX-License-Identifier: MIT */
/* How one limit of CPU time is divided among sessions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dump_format.h"
#include "system/cpu_budget.h"

#define PART 0.01
#define PROCESSORS 2u
#define MANY 300u

/* What a session may take by its limit. */
static double allowed_ns(const struct cpu_use *u)
{
	double least = DUMP_LOAD_MIN * 1e9;

	return u->limit_ppm / 1e6 * (u->cpu_ns > least ? u->cpu_ns : least);
}

static double sum_allowed_ns(const struct cpu_use *uses, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += allowed_ns(&uses[i]);
	return sum;
}

/* Nobody comes near it: the part of each is that of the machine. */
static void test_divide_leaves_all_their_part(void **state)
{
	(void)state;
	struct cpu_use uses[MANY] = { { .cost_ns = 4e6, .cpu_ns = 9e8 }, { .cost_ns = 1e5, .cpu_ns = 1e7 } };

	cpu_budget_divide(uses, MANY, PART, PROCESSORS);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(uses[i].limit_ppm, 10000);
}

/* Many that are nearly idle and take all of their part of a fifth of a processor each. */
static void test_divide_keeps_to_the_budget(void **state)
{
	(void)state;
	struct cpu_use uses[MANY];

	for (unsigned i = 0; i < MANY; i++)
		uses[i] = (struct cpu_use){ .cost_ns = 2e6, .cpu_ns = 3e6 };
	cpu_budget_divide(uses, MANY, PART, PROCESSORS);
	double sum = sum_allowed_ns(uses, MANY), budget = PART * PROCESSORS * 1e9;
	assert_true(sum <= budget * 1.02); /* a millionth each is rounded */
	assert_true(sum >= budget * 0.9);
}

static void test_divide_gives_to_those_that_grow(void **state)
{
	(void)state;
	struct cpu_use uses[MANY];

	for (unsigned i = 0; i < MANY; i++)
		uses[i] = (struct cpu_use){ .cost_ns = 2e6, .cpu_ns = 3e6 };
	uses[200].growth = 1e6;
	uses[7].growth = 2e6;
	cpu_budget_divide(uses, MANY, PART, PROCESSORS);
	assert_true(allowed_ns(&uses[7]) > 10 * allowed_ns(&uses[8]));
	assert_true(allowed_ns(&uses[200]) > 10 * allowed_ns(&uses[8]));
	assert_true(uses[8].limit_ppm > 0); /* 0 would be no limit */
	assert_true(uses[7].limit_ppm <= 10000);
}

static void test_divide_of_nothing(void **state)
{
	(void)state;
	struct cpu_use one = { .cost_ns = 1e9, .cpu_ns = 1e9 };

	cpu_budget_divide(NULL, 0, PART, PROCESSORS);
	cpu_budget_divide(&one, 1, PART, PROCESSORS);
	assert_in_range(one.limit_ppm, 1, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_divide_leaves_all_their_part),
		cmocka_unit_test(test_divide_keeps_to_the_budget),
		cmocka_unit_test(test_divide_gives_to_those_that_grow),
		cmocka_unit_test(test_divide_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
