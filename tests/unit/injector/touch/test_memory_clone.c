/* SPDX-License-Identifier: MIT */
#include "touch/remote/memory_clone.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/clones/our_clone.h"
#include "process/proc_status.h"

#define PRIORITY 1

/* A child of this process without a signal at its end. real_time: of such a priority; where that may not be, none. */
static pid_t make(const char *name, bool real_time)
{
	const struct sched_param first = { .sched_priority = PRIORITY };
	int told[2];
	char byte;

	assert_int_equal(pipe(told), 0);
	const pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		if (real_time)
			(void)!sched_setscheduler(0, SCHED_FIFO, &first);
		(void)!write(told[1], "x", 1);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	return pid;
}

static int64_t tracer_of(pid_t pid)
{
	char status[STATUS_BYTES];

	assert_int_equal(proc_status_read(status, pid, 0), 0);
	return proc_status_number(status, "TracerPid", 10, -1);
}

static void collect(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
}

/* The number of a clone that was killed and collected may be anybody's. */
static void test_who_is_no_clone_is_let_go(void **state)
{
	const struct target self = { .pid = getpid(), .tid = getpid() };
	const pid_t other = make("something", false);
	struct err e;

	(void)state;
	assert_int_equal(memory_clone_hold(&self, other, &e), -EAGAIN);
	assert_int_equal(tracer_of(other), 0);
	assert_int_equal(kill(other, 0), 0);
	assert_int_equal(waitpid(other, NULL, __WALL | WNOHANG), 0);
	collect(other);
}

static void test_clone_that_is_held_has_no_priority(void **state)
{
	const struct target self = { .pid = getpid(), .tid = getpid() };
	const pid_t clone = make(OUR_CLONE_NAME, true);
	struct err e;

	(void)state;
	assert_int_equal(memory_clone_hold(&self, clone, &e), 0);
	assert_int_equal(tracer_of(clone), gettid());
	assert_int_equal(sched_getscheduler(clone), SCHED_OTHER);
	assert_int_equal(memory_clone_end(clone, &e), 0);
}

/* Which ptrace refuses as it refuses one that may not be traced: another one can be made. */
static void test_clone_that_was_killed_is_none(void **state)
{
	const struct target self = { .pid = getpid(), .tid = getpid() };
	const pid_t clone = make(OUR_CLONE_NAME, false);
	struct err e;

	(void)state;
	kill(clone, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)clone, &(siginfo_t){ 0 }, WEXITED | WNOWAIT | __WALL), 0);
	assert_int_equal(memory_clone_hold(&self, clone, &e), -EAGAIN);
	assert_non_null(strstr(e.text, "killed"));
	assert_int_equal(waitpid(clone, NULL, __WALL), clone);
	assert_int_equal(memory_clone_hold(&self, clone, &e), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_no_clone_is_let_go),
		cmocka_unit_test(test_clone_that_is_held_has_no_priority),
		cmocka_unit_test(test_clone_that_was_killed_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
