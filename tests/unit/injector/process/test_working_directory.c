/* SPDX-License-Identifier: MIT */
/* Where another process works, also one with another root. */
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/working_directory.h"

static char top[PATH_MAX];

static int make_directories(void **state)
{
	char name[] = "/tmp/test_working_directory.XXXXXX", path[PATH_MAX + 16];

	(void)state;
	if (!mkdtemp(name) || !realpath(name, top))
		return -1;
	snprintf(path, sizeof path, "%s/in", top);
	return mkdir(path, 0700) || chdir(path) || mkdir("gone", 0700) || chdir("/");
}

static int remove_directories(void **state)
{
	char path[PATH_MAX + 16];

	(void)state;
	snprintf(path, sizeof path, "%s/in", top);
	return rmdir(path) || rmdir(top);
}

/* Of a process that has gone to a directory and then calls make_ready. NULL: it cannot. */
static const char *seen_of(const char *directory, int (*make_ready)(void))
{
	static char text[WORKING_DIRECTORY_TEXT];
	struct target t = { 0 };
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (chdir(directory) || make_ready() || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	bool is_ready = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	t.pid = t.tid = pid;
	working_directory_read(&t, text);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return is_ready ? text : NULL;
}

static int nothing_more(void)
{
	return 0;
}

static int remove_it(void)
{
	char path[PATH_MAX];

	return !getcwd(path, sizeof path) || rmdir(path);
}

static int take_as_root(void)
{
	return (chroot(top) && (unshare(CLONE_NEWUSER) || chroot(top)));
}

static void test_directory_as_the_target_sees_it(void **state)
{
	char in[PATH_MAX + 16], gone[PATH_MAX + 16];

	(void)state;
	snprintf(in, sizeof in, "%s/in", top);
	snprintf(gone, sizeof gone, "%s/in/gone", top);
	assert_string_equal(seen_of(in, nothing_more), in);
	assert_string_equal(seen_of("/", nothing_more), "/");
	assert_string_equal(seen_of(gone, remove_it), "");
	if (!seen_of(in, take_as_root)) {
		print_message("no right to take another root\n");
		return;
	}
	assert_string_equal(seen_of(in, take_as_root), "/in");
	assert_string_equal(seen_of(top, take_as_root), "/");
	assert_string_equal(seen_of("/", take_as_root), ""); /* outside of it */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_directory_as_the_target_sees_it) };

	return cmocka_run_group_tests(tests, make_directories, remove_directories);
}
