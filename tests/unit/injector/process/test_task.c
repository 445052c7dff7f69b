/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/task.h"

static void test_inner_tid_is_the_outer_one_in_one_namespace(void **state)
{
	(void)state;
	assert_int_equal(task_inner_tid(getpid(), gettid()), gettid());
	assert_int_equal(task_inner_tid(getpid(), 1 << 30), 1 << 30); /* there is none */
}

/* The first process of a pid namespace is number 1 there. */
static void test_inner_tid_is_the_targets_own(void **state)
{
	int status, begun[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(begun), 0);
	pid_t outer = fork();
	if (outer == 0) {
		if (unshare(geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWPID | CLONE_NEWUSER))
			_exit(77);
		pid_t inner = fork();
		if (inner == 0) {
			if (write(begun[1], "", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		if (read(begun[0], &byte, 1) != 1)
			_exit(1);
		int number = task_inner_tid(inner, inner);
		kill(inner, SIGKILL);
		_exit(number == 1 && inner != 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	close(begun[0]);
	close(begun[1]);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("no pid namespace may be made here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inner_tid_is_the_outer_one_in_one_namespace),
		cmocka_unit_test(test_inner_tid_is_the_targets_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
