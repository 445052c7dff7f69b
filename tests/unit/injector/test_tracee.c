/* SPDX-License-Identifier: MIT */
#include "tracee.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Between its exit and its disappearance ptrace says EPERM of a thread: that is no refusal. */
static void test_seize_of_a_zombie_tells_that_it_has_ended(void **state)
{
	struct tracee t = { 0 };
	struct err e;
	siginfo_t info;
	pid_t pid = start_sleeper();

	(void)state;
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(tracee_seize(&t, pid, pid, false, &e), -ESRCH);
	assert_false(t.seized);
	assert_non_null(strstr(e.text, "has ended"));
	end(pid);
	assert_int_equal(tracee_seize(&t, pid, pid, false, &e), -ESRCH);
}

static void test_seize_of_a_traced_thread_is_refused(void **state)
{
	struct tracee first = { 0 }, second = { 0 };
	struct err e;
	pid_t pid = start_sleeper();

	(void)state;
	assert_int_equal(tracee_seize(&first, pid, pid, false, &e), 0);
	assert_int_equal(tracee_seize(&second, pid, pid, false, &e), -EPERM);
	tracee_detach(&first);
	assert_int_equal(tracee_seize(&second, pid, pid, false, &e), 0);
	tracee_detach(&second);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seize_of_a_zombie_tells_that_it_has_ended),
		cmocka_unit_test(test_seize_of_a_traced_thread_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
