/* SPDX-License-Identifier: MIT */
#include "process/clones/our_clone.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/proc_stat.h"

/* A child of this process. ends: at once, and stays a zombie. */
static pid_t make(const char *name, int end_signal, bool ends)
{
	int told[2];
	char byte;

	assert_int_equal(pipe(told), 0);
	const pid_t pid = (pid_t)syscall(SYS_clone, end_signal, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		close(told[0]);
		(void)!write(told[1], "x", 1);
		while (!ends)
			pause();
		_exit(0);
	}
	assert_true(pid > 0);
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	if (ends)
		while (waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT | __WALL) < 0)
			;
	return pid;
}

static void collect(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
}

static struct our_clones find(pid_t known, uint64_t since_ticks)
{
	const struct target self = { .pid = getpid(), .tid = getpid() };
	struct our_clones found = { 0 };
	struct err e;

	assert_int_equal(our_clones_find(&self, (struct our_clone_wish){ known, since_ticks }, &found, &e), 0);
	return found;
}

static void test_children_of_the_program_are_none(void **state)
{
	const pid_t children[] = { make(OUR_CLONE_NAME, SIGCHLD, false), make(OUR_CLONE_NAME, SIGCHLD, true),
		                   make("something", 0, false), make("something", 0, true),
		                   make(OUR_CLONE_NAME, 0, false) };

	(void)state;
	const struct our_clones found = find(0, UINT64_MAX);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.list[0].pid, children[4]);
	free(found.list);
	for (unsigned i = 0; i < sizeof children / sizeof children[0]; i++)
		collect(children[i]);
}

static void test_what_lives_is_ended(void **state)
{
	const struct target self = { .pid = getpid(), .tid = getpid() };
	const pid_t lives = make(OUR_CLONE_NAME, 0, false), ended = make(OUR_CLONE_NAME, 0, true),
		    other = make(OUR_CLONE_NAME, SIGCHLD, false);

	(void)state;
	const struct our_clones before = find(0, UINT64_MAX);
	assert_int_equal(before.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(before.list[i].inner, before.list[i].pid);
		assert_int_equal(before.list[i].ended, before.list[i].pid == ended);
		assert_false(before.list[i].sleeps);
	}
	free(before.list);
	our_clones_end(&self, 0);
	const struct our_clones after = find(0, UINT64_MAX);
	assert_int_equal(after.count, 2);
	assert_true(after.list[0].ended && after.list[1].ended);
	free(after.list);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	collect(lives);
	collect(ended);
	collect(other);
}

static uint64_t birth(pid_t pid)
{
	uint64_t ticks = 0;

	assert_int_equal(proc_stat_number(pid, 22, &ticks, ERR_IGNORED), 0);
	return ticks;
}

static void test_one_without_its_name_is_expected(void **state)
{
	const pid_t own = make("something", SIGCHLD, false);

	(void)state;
	assert_int_equal(find(0, 0).expected, 0);
	const pid_t unnamed = make("something", 0, false);
	assert_int_equal(find(0, birth(unnamed)).expected, 1);
	assert_int_equal(find(0, birth(unnamed) + 1).expected, 0);
	const struct our_clones found = find(unnamed, 0);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.list[0].pid, unnamed);
	assert_int_equal(found.expected, 0);
	free(found.list);
	collect(unnamed);
	collect(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_of_the_program_are_none),
		cmocka_unit_test(test_what_lives_is_ended),
		cmocka_unit_test(test_one_without_its_name_is_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
