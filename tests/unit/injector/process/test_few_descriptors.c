/* SPDX-License-Identifier: MIT */
/* Where memattach can open no file it sees nothing of a process: which is not that the process has ended. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "choose/chosen.h"
#include "process/clones/our_clone.h"
#include "process/live_thread.h"
#include "process/proc_stat.h"
#include "process/target.h"
#include "process/task.h"

static struct target target;
static struct rlimit before;

static int begin(void **state)
{
	(void)state;
	const pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid < 0 || target_open(&target, pid, ERR_IGNORED);
}

static int end(void **state)
{
	(void)state;
	kill(target.pid, SIGKILL);
	waitpid(target.pid, NULL, 0);
	target_close(&target);
	return 0;
}

/* So many more can be opened at a time: all that are below the next one are in use. */
static void leave_descriptors(unsigned count)
{
	const int next = dup(STDERR_FILENO);

	assert_true(next > 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)next + count, before.rlim_max }), 0);
}

static void leave_all(void)
{
	setrlimit(RLIMIT_NOFILE, &before);
}

static void test_what_cannot_be_looked_at_lives(void **state)
{
	struct thread_info *threads = NULL;
	struct our_clones clones = { 0 };
	size_t count = 0;
	struct target again;
	struct chosen chosen;
	pid_t *tids = NULL, tid = 0;
	char name[TRACER_NAME];
	uint64_t ticks = 0;
	struct err e;

	(void)state;
	leave_descriptors(0);
	const bool alive = target_alive(&target), ended = thread_has_ended(target.pid, target.pid);
	const int looks[] = { target_open(&again, target.pid, &e),
		              target_check_tracer(&target, &e),
		              target_tracer(target.pid, target.pid, name),
		              target_tids(&target, &tids, &count, &e),
		              target_threads(&target, &threads, &count, &e),
		              proc_stat_number(target.pid, 22, &ticks, &e),
		              task_find_alive(target.pid, &tid),
		              chosen_look(&chosen, target.pid, &e),
		              our_clones_find(&target, OUR_CLONE_NAMED, &clones, &e) };
	leave_all();
	assert_true(alive);
	assert_false(ended);
	for (unsigned i = 0; i < sizeof looks / sizeof looks[0]; i++)
		assert_int_equal(looks[i], -EMFILE);
}

/* The list of children can be read, and none of them: who is wanted is not said to be none. */
static void test_a_child_that_cannot_be_read_may_be_a_clone(void **state)
{
	const struct target self = { .pid = getpid(), .tid = getpid() };
	struct our_clones clones = { 0 };
	unsigned room = 0;
	struct err e;
	int rc;

	(void)state;
	do {
		leave_descriptors(room++);
		rc = our_clones_find(&self, OUR_CLONE_NAMED, &clones, &e);
		leave_all();
	} while (rc == -EMFILE);
	assert_int_equal(rc, 0);
	free(clones.list);
	assert_int_equal(room, 3); /* one for the list, one for the child */
}

static void test_who_has_ended_has(void **state)
{
	struct target gone;
	struct err e;

	(void)state;
	const pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	assert_int_equal(target_open(&gone, pid, &e), 0);
	assert_true(target_alive(&gone));
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_false(target_alive(&gone));
	leave_descriptors(0);
	const bool alive = target_alive(&gone);
	leave_all();
	assert_false(alive);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(target_alive(&gone));
	assert_true(thread_has_ended(pid, pid));
	target_close(&gone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_cannot_be_looked_at_lives, begin, end),
		cmocka_unit_test_setup_teardown(test_a_child_that_cannot_be_read_may_be_a_clone, begin, end),
		cmocka_unit_test(test_who_has_ended_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
