/* SPDX-License-Identifier: MIT */
/* Many threads, running and asleep: each is visited once, in a stop, and goes on. */
#include "touch/threads/visit_threads.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/target.h"
#include "threads_fixture.h"

#define RUNNING 20
#define ASLEEP 40
#define THREADS (RUNNING + ASLEEP + 1)
#define PATIENCE_NS 60000000000ull

static _Atomic uint64_t *rounds; /* of the threads that run, shared with the child */

static void *run(void *number)
{
	for (;;)
		rounds[(uintptr_t)number]++;
	return NULL;
}

/* The last one does as the test says. */
static thread_work last_work;

static thread_work work_of(uintptr_t number)
{
	return number < RUNNING ? run : number + 1 < RUNNING + ASLEEP ? threads_sleep : last_work;
}

static pid_t start_target(thread_work last)
{
	last_work = last;
	return threads_start(RUNNING + ASLEEP, work_of, (void **)&rounds);
}

/* First number after the name in the thread's status. */
static char status_of(pid_t pid, pid_t tid, const char *name)
{
	char path[64], line[256], value = '?';

	snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (strncmp(line, name, strlen(name)) == 0)
			value = line[strlen(name) + 1];
	fclose(f);
	return value;
}

struct visits {
	pid_t pid, tids[THREADS + 1];
	size_t stopped, ended, late;
};

static void visit(void *context, pid_t tid, struct tracee *t, int rc, const struct err *e)
{
	struct visits *v = context;
	size_t n = v->stopped + v->ended + v->late;

	assert_true(n <= THREADS);
	for (size_t i = 0; i < n; i++)
		assert_int_not_equal(v->tids[i], tid);
	v->tids[n] = tid;
	if (rc == 0) {
		assert_int_equal(t->tid, tid);
		assert_int_equal(status_of(v->pid, tid, "State:"), 't');
		v->stopped++;
	} else {
		assert_null(t);
		assert_true(e->text[0]);
		v->ended += rc == -ESRCH;
		v->late += rc == -ETIMEDOUT;
	}
}

static void test_crowd_visits_each_thread_once(void **state)
{
	pid_t pid = start_target(threads_sleep), *tids = NULL;
	const struct target target = { .pid = pid, .tid = pid };
	struct visits v = { .pid = pid };
	uint64_t longest = 0, before[RUNNING];
	size_t count = 0;
	struct err e;

	(void)state;
	assert_int_equal(target_tids(&target, &tids, &count, &e), 0);
	assert_int_equal(count, THREADS);
	pid_t *with_gone = calloc(count + 1, sizeof *with_gone);
	memcpy(with_gone, tids, count * sizeof *tids);
	with_gone[count] = 0x7fffffff; /* is none */
	const struct thread_visits thread_visits = { pid,      with_gone, count + 1, clock_monotonic_ns() + PATIENCE_NS,
		                                     &longest, visit,     &v };
	assert_int_equal(visit_threads(&thread_visits, &e), 0);
	assert_int_equal(v.stopped, THREADS);
	assert_int_equal(v.ended, 1);
	assert_int_equal(v.late, 0);
	assert_true(longest > 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(status_of(pid, tids[i], "TracerPid:"), '0');
	for (int i = 0; i < RUNNING; i++)
		before[i] = rounds[i];
	for (int i = 0; i < RUNNING; i++)
		while (rounds[i] == before[i])
			usleep(1000);
	free(with_gone);
	free(tids);
	threads_end(pid, (void *)rounds);
}

/* The child ends with the thread that waits for it, so a failed test leaves nothing behind. */
static void vfork_that_stays(void)
{
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

static void *vfork_and_sleep(void *nothing)
{
	vfork_that_stays();
	return threads_sleep(nothing);
}

static void wait_for_state(pid_t pid, pid_t tid, char state)
{
	while (status_of(pid, tid, "State:") != state)
		usleep(1000);
}

/* 0 if it has none. */
static pid_t child_of(pid_t pid, pid_t tid)
{
	char children[64], line[32] = "";

	snprintf(children, sizeof children, "/proc/%d/task/%d/children", pid, tid);
	FILE *f = fopen(children, "re");
	assert_non_null(f);
	if (!fgets(line, sizeof line, f))
		line[0] = '\0';
	fclose(f);
	return (pid_t)atoi(line);
}

/* A thread is in state D for a moment when it waits for a lock of its memory, too: only with a child it is in vfork. */
static void wait_for_vfork(pid_t pid, pid_t tid)
{
	while (child_of(pid, tid) == 0)
		usleep(1000);
	wait_for_state(pid, tid, 'D');
}

/* The one that waits for the child of its vfork; numbers of threads do not tell, as they begin anew some time. */
static pid_t wait_for_parent(pid_t pid, const pid_t *tids, size_t count)
{
	for (size_t i = 0;; i = (i + 1) % count) {
		if (child_of(pid, tids[i]) != 0) {
			wait_for_state(pid, tids[i], 'D');
			return tids[i];
		}
		if (i == 0)
			usleep(1000);
	}
}

static void kill_child_of(pid_t pid, pid_t tid)
{
	pid_t child = child_of(pid, tid);

	assert_true(child > 0);
	kill(child, SIGKILL);
}

/*
 * A thread that an earlier step gave up has come to its stop meanwhile, before the thread_visits asks it: it is visited
 * like the others. It must not be resumed and then taken for one that has ended, because it is not traced any more.
 */
static void test_crowd_visits_a_thread_that_came_late(void **state)
{
	pid_t pid = start_target(vfork_and_sleep), *tids = NULL, last;
	const struct target target = { .pid = pid, .tid = pid };
	struct visits v = { .pid = pid };
	struct tracee t = { 0 };
	enum tracee_stop stop;
	size_t count = 0;
	struct err e;

	(void)state;
	assert_int_equal(target_tids(&target, &tids, &count, &e), 0);
	assert_int_equal(count, THREADS);
	last = wait_for_parent(pid, tids, count);
	assert_int_equal(tracee_seize(&t, pid, last, false, &e), 0);
	assert_int_equal(tracee_interrupt(&t, clock_monotonic_ns() + 20000000, &stop, &e), -ETIMEDOUT);
	tracee_detach(&t);
	kill_child_of(pid, last);
	wait_for_state(pid, last, 't');
	const struct thread_visits thread_visits = { pid,  tids,  count, clock_monotonic_ns() + PATIENCE_NS,
		                                     NULL, visit, &v };
	assert_int_equal(visit_threads(&thread_visits, &e), 0);
	assert_int_equal(v.ended, 0);
	assert_int_equal(v.stopped, THREADS);
	assert_int_equal(status_of(pid, last, "TracerPid:"), '0');
	free(tids);
	threads_end(pid, (void *)rounds);
}

/* A thread that waits for the child of its vfork does not stop. */
static void test_crowd_gives_up_at_the_deadline(void **state)
{
	struct visits v = { 0 };
	struct err e;

	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		vfork_that_stays();
		_exit(0);
	}
	assert_true(pid > 0);
	wait_for_vfork(pid, pid);
	v.pid = pid;
	const struct thread_visits thread_visits = { pid, &pid, 1, clock_monotonic_ns() + 50000000u, NULL, visit, &v };
	assert_int_equal(visit_threads(&thread_visits, &e), 0);
	assert_int_equal(v.late, 1);
	assert_int_equal(v.stopped + v.ended, 0);
	kill_child_of(pid, pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* memattach has children that are no tracees, such as the one that writes the dump: who waits for them finds them. */
static void test_crowd_leaves_other_children_alone(void **state)
{
	struct visits v = { 0 };
	siginfo_t info = { 0 };
	struct err e;

	(void)state;
	pid_t other = fork();
	if (other == 0)
		_exit(7);
	assert_int_equal(waitid(P_PID, (id_t)other, &info, WEXITED | WNOWAIT), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	v.pid = pid;
	const struct thread_visits thread_visits = {
		pid, &pid, 1, clock_monotonic_ns() + PATIENCE_NS, NULL, visit, &v
	};
	assert_int_equal(visit_threads(&thread_visits, &e), 0);
	assert_int_equal(v.stopped, 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	int status = 0;
	assert_int_equal(waitpid(other, &status, WNOHANG), other);
	assert_int_equal(WEXITSTATUS(status), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crowd_visits_each_thread_once),
		cmocka_unit_test(test_crowd_visits_a_thread_that_came_late),
		cmocka_unit_test(test_crowd_gives_up_at_the_deadline),
		cmocka_unit_test(test_crowd_leaves_other_children_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
