/* SPDX-License-Identifier: MIT */
/* The governor over targets that are made up: so much CPU time, and a cost of sampling that follows the rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recording/governor.h"

#define SECOND 1000000000ull
#define LEAST (512ull << 10)

struct target {
	struct governor g;
	struct governor_reading look;
	unsigned changes, ups, downs;
	double largest; /* overhead of a stretch between two looks */
};

static void begin(struct target *t, double limit, uint64_t rate)
{
	*t = (struct target){ .look = { .now_ns = 5 * SECOND, .cpu_ns = 77 * SECOND } };
	governor_init(&t->g, limit, rate, &t->look);
}

/* Runs for so long at a load (CPU time in time) that would cost the share `at_least` of the CPU time at the least rate.
 */
static void run(struct target *t, double seconds, double load, double at_least)
{
	for (uint64_t end = t->look.now_ns + (uint64_t)(seconds * SECOND); t->look.now_ns < end;) {
		uint64_t old = t->g.rate;
		uint64_t next = governor_next_poll(&t->g, t->look.now_ns);
		double cpu = load * (double)(next - t->look.now_ns);
		double share = at_least * (double)t->g.least / (double)old;

		t->largest = share > t->largest ? share : t->largest;
		t->look.now_ns = next;
		t->look.cpu_ns += (uint64_t)cpu;
		t->look.cost_ns += (uint64_t)(cpu * share);
		uint64_t rate = governor_decide(&t->g, &t->look, true);
		assert_int_equal(rate, t->g.rate);
		assert_true(rate >= t->g.least && rate <= GOVERNOR_RATE_MAX);
		t->changes += rate != old;
		t->ups += rate > old;
		t->downs += rate < old;
	}
}

static void test_governor_leaves_what_is_cheap(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, LEAST);
	run(&t, 600, 1, 0.009);
	run(&t, 600, 4, 0.00001);
	assert_int_equal(t.changes, 0);
}

static void test_governor_without_limit_never_changes(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0, 1);
	run(&t, 60, 1, 0.9);
	assert_int_equal(t.changes, 0);
}

/* A hundredfold jump is held within seconds; when it is over the rate comes back to the user's, and never goes below.
 */
static void test_governor_follows_a_jump(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, LEAST);
	run(&t, 60, 0.5, 0.003);
	assert_int_equal(t.changes, 0);
	run(&t, 5, 0.5, 0.3);
	assert_true(t.ups >= 1 && t.downs == 0);
	t.largest = 0;
	run(&t, 600, 0.5, 0.3);
	assert_true(t.largest <= 0.01);
	assert_int_equal(t.downs, 0);
	run(&t, 600, 0.5, 0.003);
	assert_int_equal(t.g.rate, LEAST);
	assert_true(t.downs >= 1);
}

/* What is far above the limit from the start is met at once, what is a little above when the first samples, which are
 * dear, are few among others. */
static void test_governor_hurries_at_the_start(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, 4096);
	run(&t, 0.1, 1, 0.25);
	assert_int_equal(t.ups, 1);
	begin(&t, 0.01, 4096);
	run(&t, 0.9, 1, 0.05);
	assert_int_equal(t.changes, 0);
	run(&t, 0.2, 1, 0.05);
	assert_int_equal(t.ups, 1);
}

/* A limit of 1 % is 0.2 % of a processor where the target uses less than a fifth of one. */
static void test_governor_counts_a_fifth_of_a_processor(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, LEAST);
	run(&t, 60, 0.01, 0.18);
	assert_int_equal(t.changes, 0);
	run(&t, 60, 0.01, 0.25);
	assert_true(t.ups >= 1);
	begin(&t, 0.01, LEAST);
	run(&t, 60, 0.4, 0.0125);
	assert_true(t.ups >= 1);
}

static void test_governor_comes_back_soon(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, LEAST);
	run(&t, 20, 1, 0.0001);
	run(&t, 5, 1, 0.4);
	assert_true(t.g.rate >= 32 * LEAST);
	run(&t, 15, 1, 0.0001);
	assert_int_equal(t.g.rate, LEAST);
}

/* What is spent until the rate is raised is saved again. */
static void test_governor_saves_what_was_overspent(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, LEAST);
	uint64_t cost_ns = t.look.cost_ns, cpu_ns = t.look.cpu_ns;
	run(&t, 15, 1, 2);
	assert_true((double)(t.look.cost_ns - cost_ns) <= 0.011 * (double)(t.look.cpu_ns - cpu_ns));
	run(&t, 120, 1, 2);
	assert_true((double)(t.look.cost_ns - cost_ns) <= 0.01 * (double)(t.look.cpu_ns - cpu_ns));
	double late = (double)t.g.least / (double)t.g.rate * 2;
	assert_true(late >= 0.0025);
}

/* Where samples do not become half as many by doubling (blocks larger than the rate), it goes on. */
static void test_governor_goes_on_from_every_allocation(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, 1);
	for (int i = 0; i < 40; i++) {
		double p = t.g.rate < 4096 ? 1 : 4096.0 / (double)t.g.rate;
		run(&t, 0.25, 1, 0.8 * p * (double)t.g.rate); /* so that the share is 0.8 p */
	}
	assert_true(t.g.rate >= 4096 * 80);
	unsigned ups = t.ups;
	run(&t, 0.25, 1, 0.005 * (double)t.g.rate);
	assert_int_equal(t.ups, ups);
}

/* A load that comes and goes: each step down that was wrong makes the next wait longer. */
static void test_governor_does_not_oscillate(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, LEAST);
	for (int i = 0; i < 600; i++) {
		run(&t, 15, 1, 0.001);
		run(&t, 5, 1, 0.05);
	}
	/* 600 periods in 200 minutes; without that memory each has two changes at least. */
	assert_true(t.changes < 300);
}

static void test_governor_needs_evidence(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, LEAST);
	run(&t, 60, 0.002, 0.5); /* 2 ms of CPU time a second */
	assert_int_equal(t.changes, 0);
	run(&t, 5, 0.1, 0.5);
	assert_true(t.ups > 0);
	run(&t, 600, 0, 0); /* idle: back */
	assert_int_equal(t.g.rate, LEAST);
}

static void test_governor_ends_at_the_largest_rate(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.000001, 3ull << 30);
	run(&t, 60, 1, 0.9);
	assert_int_equal(t.changes, 0);
	begin(&t, 0.000001, 1ull << 29);
	run(&t, 60, 1, 0.9);
	assert_int_equal(t.g.rate, 1ull << 31);
}

/* The counters are in a file that others may write to. */
static void test_governor_survives_wild_counters(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, LEAST);
	const uint64_t wild[] = { UINT64_MAX, 0, 1ull << 63, 5, UINT64_MAX - 1 };
	for (int i = 0; i < 50; i++) {
		t.look.now_ns += GOVERNOR_POLL_NS;
		t.look.cost_ns = wild[i % 5];
		t.look.cpu_ns = wild[(i / 5) % 5];
		uint64_t rate = governor_decide(&t.g, &t.look, true);
		assert_true(rate >= LEAST && rate <= GOVERNOR_RATE_MAX);
	}
}

static void test_governor_lowers_only_if_it_may(void **state)
{
	struct target t;

	(void)state;
	begin(&t, 0.01, LEAST);
	run(&t, 5, 1, 0.5);
	uint64_t high = t.g.rate;
	assert_true(high > LEAST);
	for (int i = 0; i < 400; i++) {
		t.look.now_ns += GOVERNOR_POLL_NS;
		t.look.cpu_ns += GOVERNOR_POLL_NS;
		assert_int_equal(governor_decide(&t.g, &t.look, false), high);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_governor_leaves_what_is_cheap),
		cmocka_unit_test(test_governor_without_limit_never_changes),
		cmocka_unit_test(test_governor_follows_a_jump),
		cmocka_unit_test(test_governor_hurries_at_the_start),
		cmocka_unit_test(test_governor_counts_a_fifth_of_a_processor),
		cmocka_unit_test(test_governor_comes_back_soon),
		cmocka_unit_test(test_governor_saves_what_was_overspent),
		cmocka_unit_test(test_governor_goes_on_from_every_allocation),
		cmocka_unit_test(test_governor_does_not_oscillate),
		cmocka_unit_test(test_governor_needs_evidence),
		cmocka_unit_test(test_governor_ends_at_the_largest_rate),
		cmocka_unit_test(test_governor_survives_wild_counters),
		cmocka_unit_test(test_governor_lowers_only_if_it_may),
	};

	return cmocka_run_group_tests_name("governor", tests, NULL, NULL);
}
