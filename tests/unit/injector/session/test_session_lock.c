/* SPDX-License-Identifier: MIT */
/* One memattach at a time: the lock on a process, across processes and users, and who has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_lock.h"

static pid_t process; /* that is locked */

static struct target open_target(bool old_kernel)
{
	struct target t = { .pid = process, .tid = process, .lock_fd = { -1, -1 }, .announced_fd = -1 };
	char path[40];

	t.pidfd = (int)syscall(SYS_pidfd_open, process, 0);
	assert_true(t.pidfd >= 0);
	if (old_kernel) { /* what session_lock does where a pidfd has no inode of its own */
		close(t.pidfd);
		snprintf(path, sizeof path, "/proc/%d/stat", process);
		t.pidfd = open(path, O_RDONLY);
	}
	return t;
}

static int start_process(void **state)
{
	(void)state;
	process = fork();
	if (process == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return process < 0;
}

static int end_process(void **state)
{
	(void)state;
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
	return 0;
}

static void check_that_one_has_it(bool old_kernel)
{
	struct target first = open_target(old_kernel), second = open_target(old_kernel);
	struct err e;
	pid_t holder = 0;

	assert_int_equal(session_lock_holder(&first), 0);
	assert_int_equal(session_lock_take(&first, &holder, &e), 0);
	assert_int_equal(session_lock_take(&second, &holder, &e), -EBUSY);
	assert_int_equal(holder, getpid());
	assert_non_null(strstr(e.text, "cannot be shown to be a memattach")); /* which this program is not */
	assert_int_equal(session_lock_holder(&second), getpid());
	target_close(&first);
	assert_int_equal(session_lock_take(&second, &holder, &e), 0);
	target_close(&second);
}

static void test_one_has_it(void **state)
{
	(void)state;
	check_that_one_has_it(false);
}

static void test_one_has_it_on_older_kernels(void **state)
{
	(void)state;
	check_that_one_has_it(true);
}

/* A holder that dies. */
static void test_death_releases_it(void **state)
{
	struct target t = open_target(false);
	int ready[2];
	struct err e;
	char byte;
	pid_t holder;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct target mine = open_target(false);
		if (session_lock_take(&mine, &holder, &e) < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(session_lock_take(&t, &holder, &e), -EBUSY);
	assert_int_equal(holder, child);
	assert_false(session_lock_is_memattach(&t, child));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(session_lock_take(&t, &holder, &e), 0);
	target_close(&t);
}

/* A user who has nothing to do with the process locks a pidfd and a file of /proc in all ways there are, and keeps them
 * locked, also after the process that did it has ended: nobody is kept away, and nobody is named. */
static void test_strangers_keep_nobody_away(void **state)
{
	const struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct target t = open_target(false);
	int ready[2];
	struct err e;
	pid_t numbers[2], holder;
	char path[40];

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(ready), 0);
	snprintf(path, sizeof path, "/proc/%d/stat", process);
	for (unsigned handed_on = 0; handed_on < 2; handed_on++) {
		pid_t child = fork();
		if (child == 0) {
			int pidfd = (int)syscall(SYS_pidfd_open, process, 0), stat_file = open(path, O_RDONLY);
			if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
				_exit(1);
			flock(pidfd, LOCK_EX | LOCK_NB);
			flock(stat_file, LOCK_EX | LOCK_NB);
			fcntl(pidfd, F_SETLK, &all);
			numbers[0] = getpid();
			if (handed_on && fork() > 0)
				_exit(0);
			numbers[1] = getpid();
			alarm(60);
			if (write(ready[1], numbers, sizeof numbers) == sizeof numbers)
				for (;;)
					pause();
			_exit(1);
		}
		assert_int_equal(read(ready[0], numbers, sizeof numbers), sizeof numbers);
		if (handed_on)
			waitpid(child, NULL, 0);
		assert_int_equal(session_lock_holder(&t), 0);
		assert_int_equal(session_lock_announced(&t), 0);
		assert_int_equal(session_lock_announce(&t, &e), 0);
		assert_int_equal(session_lock_take(&t, &holder, &e), 0);
		session_lock_release(&t);
		kill(numbers[1], SIGKILL);
		if (!handed_on)
			waitpid(child, NULL, 0);
	}
	target_close(&t);
}

/* Root is entitled: named, also when the lock was handed on. */
static void test_who_has_it_is_named(void **state)
{
	struct target t = open_target(false);
	char text[SESSION_LOCK_TEXT], wanted[40];
	int ready[2];
	struct err e;
	pid_t holder, has_it;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct target mine = open_target(false);
		if (session_lock_take(&mine, &holder, &e) < 0 || fork() > 0)
			_exit(0);
		has_it = getpid();
		alarm(60);
		if (write(ready[1], &has_it, sizeof has_it) == sizeof has_it)
			for (;;)
				pause();
		_exit(1);
	}
	waitpid(child, NULL, 0);
	assert_int_equal(read(ready[0], &has_it, sizeof has_it), sizeof has_it);
	assert_int_equal(session_lock_take(&t, &holder, &e), -EBUSY);
	assert_int_equal(holder, has_it);
	session_lock_describe(has_it, text);
	snprintf(wanted, sizeof wanted, "PID %d (", has_it);
	assert_non_null(strstr(text, wanted));
	assert_non_null(strstr(e.text, text));
	kill(has_it, SIGKILL);
	target_close(&t);
}

/* Who waits for a next session keeps nobody away, and is seen until he is gone. */
static void check_that_one_is_announced(bool old_kernel)
{
	struct target t = open_target(old_kernel);
	int ready[2];
	struct err e;
	char byte;
	pid_t holder;

	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct target mine = open_target(old_kernel);
		if (session_lock_announce(&mine, &e) < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(session_lock_announced(&t), child);
	assert_int_equal(session_lock_holder(&t), 0);
	assert_false(session_lock_is_announced_by_memattach(&t, child)); /* this program is none */
	assert_int_equal(session_lock_take(&t, &holder, &e), 0);
	assert_int_equal(session_lock_announced(&t), child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(session_lock_announced(&t), 0);
	target_close(&t);
}

/* The announcement lasts until the lock is there, so --detach always finds one of them; it does not without. */
static void check_that_the_lock_follows(bool old_kernel)
{
	struct target mine = open_target(old_kernel), other = open_target(old_kernel);
	int asked[2], answered[2];
	struct err e;
	pid_t holder;

	assert_int_equal(pipe(asked), 0);
	assert_int_equal(pipe(answered), 0);
	pid_t child = fork(); /* a process does not see its own lock go */
	if (child == 0) {
		for (char byte; read(asked[0], &byte, 1) == 1;) {
			pid_t seen[2] = { session_lock_announced(&other), session_lock_holder(&other) };
			if (write(answered[1], seen, sizeof seen) != sizeof seen)
				_exit(1);
		}
	}
	close(asked[0]);
	for (unsigned step = 0; step < 3; step++) {
		if (step < 2) /* the second time it does nothing */
			assert_int_equal(session_lock_announce(&mine, &e), 0);
		else
			assert_int_equal(session_lock_take(&mine, &holder, &e), 0);
		pid_t seen[2];
		assert_int_equal(write(asked[1], "?", 1), 1);
		assert_int_equal(read(answered[0], seen, sizeof seen), sizeof seen);
		assert_int_equal(seen[0], step < 2 ? getpid() : 0);
		assert_int_equal(seen[1], step < 2 ? 0 : getpid());
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	target_close(&mine);
	target_close(&other);
}

static void test_the_lock_follows(void **state)
{
	(void)state;
	check_that_the_lock_follows(false);
}

static void test_the_lock_follows_on_older_kernels(void **state)
{
	(void)state;
	check_that_the_lock_follows(true);
}

static void test_one_is_announced(void **state)
{
	(void)state;
	check_that_one_is_announced(false);
}

static void test_one_is_announced_on_older_kernels(void **state)
{
	(void)state;
	check_that_one_is_announced(true);
}

#define WITH_PROCESS(name) cmocka_unit_test_setup_teardown(name, start_process, end_process)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PROCESS(test_one_has_it),
		WITH_PROCESS(test_one_has_it_on_older_kernels),
		WITH_PROCESS(test_death_releases_it),
		WITH_PROCESS(test_strangers_keep_nobody_away),
		WITH_PROCESS(test_who_has_it_is_named),
		WITH_PROCESS(test_one_is_announced),
		WITH_PROCESS(test_one_is_announced_on_older_kernels),
		WITH_PROCESS(test_the_lock_follows),
		WITH_PROCESS(test_the_lock_follows_on_older_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
