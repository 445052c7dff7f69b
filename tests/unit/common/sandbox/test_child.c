/* SPDX-License-Identifier: MIT */
/* Child processes: how they end, with their parent and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/call_filter.h"
#include "sandbox/child.h"

#include "arch/system_calls.h"

static _Noreturn void live_on(void)
{
	for (;;)
		pause();
}

static bool never(void *context)
{
	++*(unsigned *)context;
	return false;
}

static bool always(void *unused)
{
	(void)unused;
	return true;
}

static void test_child_await_tells_the_status(void **state)
{
	struct rusage used;

	(void)state;
	pid_t child = child_start(SIGKILL);
	if (child == 0)
		_exit(7);
	int status = child_await(child, always, NULL, &used);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void test_child_await_ends_what_may_not_go_on(void **state)
{
	unsigned asked = 0;

	(void)state;
	pid_t child = child_start(SIGKILL);
	if (child == 0)
		live_on();
	int status = child_await(child, never, &asked, NULL);
	assert_int_equal(asked, 1);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(child_wait(child), -1);
}

static void test_child_end_leaves_no_zombie(void **state)
{
	(void)state;
	pid_t child = child_start(0);
	if (child == 0)
		live_on();
	assert_false(child_ends_within(child, 0));
	child_end(child);
	assert_int_equal(waitpid(child, NULL, 0), -1);
}

/* memanalyze is forbidden to ask for one when it reads for a user. */
static void test_child_ends_within_without_a_pidfd(void **state)
{
	static const uint32_t forbidden[] = { SYS_pidfd_open };

	(void)state;
	pid_t tester = child_start(SIGKILL);
	if (tester == 0) {
		struct call_filter f;
		call_filter_begin(&f);
		if (call_filter_end(&f, forbidden, 1, CALL_FILTER_REFUSE(EPERM), SECCOMP_RET_ALLOW) < 0)
			_exit(2);
		pid_t lives = child_start(SIGKILL);
		if (lives == 0)
			live_on();
		pid_t ends = child_start(SIGKILL);
		if (ends == 0)
			_exit(0);
		_exit(!child_ends_within(ends, 10000) || child_ends_within(lives, 1));
	}
	assert_int_equal(child_wait(tester), 0);
}

/* A parent that ends leaves the one that outlives it, and no other: both hold the pipe. */
static bool outlives(int end_signal)
{
	int pipe_of[2], told[2];
	pid_t child = 0;
	char byte;

	assert_int_equal(pipe(pipe_of), 0);
	assert_int_equal(pipe(told), 0);
	pid_t parent = child_start(SIGKILL);
	if (parent == 0) {
		child = child_start(end_signal);
		if (child == 0) {
			close(told[1]);
			live_on();
		}
		_exit(write(told[1], &child, sizeof child) != sizeof child);
	}
	close(pipe_of[1]);
	assert_int_equal(read(told[0], &child, sizeof child), sizeof child);
	assert_int_equal(child_wait(parent), 0);
	if (end_signal)
		assert_int_equal(read(pipe_of[0], &byte, 1), 0); /* nobody has its other end any more */
	bool lives = kill(child, 0) == 0 && !end_signal;
	if (lives)
		kill(child, SIGKILL);
	close(pipe_of[0]);
	close(told[0]);
	close(told[1]);
	return lives;
}

static void test_child_start_ends_with_its_parent(void **state)
{
	(void)state;
	assert_false(outlives(SIGKILL));
	assert_false(outlives(SIGTERM));
	assert_true(outlives(0));
}

static int calls_under_filter(void)
{
	/* Of a sanitizer, before _exit(): sigaltstack. */
	static const uint32_t allowed[] = { SYS_exit_group, SYS_exit, SYS_sigaltstack };
	struct call_filter f;

	call_filter_begin(&f);
	call_filter_answer(&f, SYS_getppid, CALL_FILTER_REFUSE(ENOENT));
	call_filter_when(&f, SYS_kill, 1, UINT32_MAX, 0, SECCOMP_RET_ALLOW);
	call_filter_answer(&f, SYS_kill, CALL_FILTER_REFUSE(EBUSY));
	call_filter_without(&f, SYS_mmap, 2, PROT_EXEC);
	if (call_filter_end(&f, allowed, 3, SECCOMP_RET_ALLOW, CALL_FILTER_REFUSE(EDOM)) < 0)
		return 2;
	if (syscall(SYS_getppid) != -1 || errno != ENOENT)
		return 3;
	if (syscall(SYS_kill, 0, 0) != 0 || syscall(SYS_kill, 0, 1) != -1 || errno != EBUSY)
		return 4;
	if ((void *)syscall(SYS_mmap, NULL, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
	    errno != EPERM)
		return 5;
	if ((void *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return 6;
	return syscall(SYS_getpid) == -1 && errno == EDOM ? 0 : 7;
}

static void test_call_filter_answers_by_its_first_rule(void **state)
{
	(void)state;
	pid_t child = child_start(SIGKILL);
	if (child == 0)
		_exit(calls_under_filter());
	int status = child_wait(child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_await_tells_the_status),
		cmocka_unit_test(test_child_await_ends_what_may_not_go_on),
		cmocka_unit_test(test_child_end_leaves_no_zombie),
		cmocka_unit_test(test_child_ends_within_without_a_pidfd),
		cmocka_unit_test(test_child_start_ends_with_its_parent),
		cmocka_unit_test(test_call_filter_answers_by_its_first_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
