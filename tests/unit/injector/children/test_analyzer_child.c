/* SPDX-License-Identifier: MIT */
#include "children/analyzer_child.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox/child.h"

#define SECONDS 1u

static bool always(void *context, double done)
{
	(void)context, (void)done;
	return true;
}

/* As a memattach that is stopped between two looks, for longer than the child may take. */
static bool is_held_up(void *context, double done)
{
	bool *once = context;

	(void)done;
	if (!*once)
		nanosleep(&(struct timespec){ .tv_sec = 2 * SECONDS }, NULL);
	*once = true;
	return true;
}

static pid_t start(unsigned seconds)
{
	const pid_t pid = child_start(0);

	if (pid == 0) {
		nanosleep(&(struct timespec){ .tv_sec = seconds }, NULL);
		_exit(7);
	}
	assert_true(pid > 0);
	return pid;
}

static void test_await_counts_no_time_in_which_memattach_was_held_up(void **state)
{
	bool once = false;
	const struct patience patience = { is_held_up, &once };
	const struct analyzer_child child = { .pid = start(1), .task = "works", .seconds = SECONDS };
	int status = -1;
	struct err e;

	(void)state;
	assert_int_equal(analyzer_child_await(&child, &patience, &status, &e), 0);
	assert_int_equal(status, 7);
	assert_true(once);
}

static void test_await_ends_one_that_takes_too_long(void **state)
{
	const struct patience patience = { always, NULL };
	const struct analyzer_child child = { .pid = start(600), .task = "works", .seconds = SECONDS };
	int status = -1;
	struct err e;

	(void)state;
	assert_int_equal(analyzer_child_await(&child, &patience, &status, &e), -ETIMEDOUT);
	assert_int_equal(status, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_await_counts_no_time_in_which_memattach_was_held_up),
		cmocka_unit_test(test_await_ends_one_that_takes_too_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
