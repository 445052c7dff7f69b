/* SPDX-License-Identifier: MIT */
/* Which processes fork too often for a session: this one, over looks of two seconds that nobody waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "system/fork_budget.h"

#define PART 0.01
#define SMALL_PART 0.0001 /* also where a fork takes ten milliseconds */
#define LOOK_NS 2000000000ull
#define MANY 400u
#define FEW 50u

static void fork_often(struct fork_count *c, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
		c->forks++;
	}
}

static __attribute__((noinline)) void borrow_memory(void)
{
	pid_t child = vfork();

	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void borrow_often(struct fork_count *c, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		borrow_memory();
		c->forks++;
	}
}

/* Is it too much after so many looks, each with so many forks before it? */
static bool exceeds(void (*make)(struct fork_count *c, unsigned times), unsigned times, unsigned looks, double part)
{
	struct fork_count c = { 0 };

	for (unsigned i = 1; i <= looks; i++) {
		make(&c, times);
		fork_budget_look(&c, getpid(), part, i * LOOK_NS);
	}
	return fork_budget_exceeded(&c);
}

static void test_look_finds_many_forks(void **state)
{
	(void)state;
	assert_true(exceeds(fork_often, MANY, 5, SMALL_PART));
	assert_false(exceeds(fork_often, FEW, 5, PART));
}

static void test_look_waits_for_more_than_a_start(void **state)
{
	(void)state;
	assert_false(exceeds(fork_often, MANY, 3, SMALL_PART));
}

static void test_look_leaves_borrowers_of_memory_alone(void **state)
{
	(void)state;
	assert_false(exceeds(borrow_often, MANY, 5, PART));
}

static void test_look_without_a_limit(void **state)
{
	(void)state;
	assert_false(exceeds(fork_often, MANY, 5, 0));
}

/* What was too much is not for ever. */
static void test_look_forgets(void **state)
{
	(void)state;
	struct fork_count c = { 0 };

	for (unsigned i = 1; i <= 5; i++) {
		fork_often(&c, MANY);
		fork_budget_look(&c, getpid(), SMALL_PART, i * LOOK_NS);
	}
	assert_true(fork_budget_exceeded(&c));
	fork_budget_look(&c, getpid(), SMALL_PART, 6 * LOOK_NS);
	assert_false(fork_budget_exceeded(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look_finds_many_forks),
		cmocka_unit_test(test_look_waits_for_more_than_a_start),
		cmocka_unit_test(test_look_leaves_borrowers_of_memory_alone),
		cmocka_unit_test(test_look_without_a_limit),
		cmocka_unit_test(test_look_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
