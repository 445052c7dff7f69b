/* SPDX-License-Identifier: MIT */
/* What a process can still do that has given up its rights, and what others can do to it: children tell by their exit
 * status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/system_calls.h"
#include "sandbox/rights.h"

#define USER 4711u
#define NOBODY 65534u
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* then a view has another filter */
#else
#define SANITIZED 0
#endif

static struct rights rights_of(uid_t user)
{
	return (struct rights){
		.uid = user, .gid = user, .data_bytes = 1u << 30, .file_bytes = 4096, .cpu_seconds = 10
	};
}

static int end_of(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_rights_parse_takes_what_format_wrote(void **state)
{
	const struct rights rights = { 4294967294u, 7, UINT64_MAX, 1ull << 40, 60 };
	struct rights read;
	char text[RIGHTS_TEXT], again[RIGHTS_TEXT];

	(void)state;
	rights_format(&rights, text);
	assert_true(rights_parse(text, &read));
	rights_format(&read, again);
	assert_string_equal(again, text);
	assert_true(read.uid == rights.uid && read.data_bytes == rights.data_bytes && read.cpu_seconds == 60);
	assert_false(rights_parse("", &read));
	assert_false(rights_parse("1:2:3:4", &read));
	assert_false(rights_parse("1:2:3:4:5x", &read));
}

static int may(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Not even a capability to begin with: a process of root, or the user himself. */
static int try_as_reader(uid_t user, int file, pid_t other)
{
	char path[40];

	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[2] = { 0 };
	struct iovec bytes = { &head, sizeof head };
	struct rlimit files;

	if (getuid() == 0 || geteuid() == 0 || getgid() == 0 || setuid(0) == 0)
		return 3;
	if (syscall(SYS_capget, &head, have) || have[0].permitted || have[1].permitted)
		return 4;
	if (socket(AF_INET, SOCK_STREAM, 0) != -1 || socket(AF_UNIX, SOCK_STREAM, 0) != -1 ||
	    ptrace(PTRACE_TRACEME, 0, 0, 0) != -1 || process_vm_readv(getppid(), &bytes, 1, &bytes, 1, 0) != -1)
		return 5;
	if (getrlimit(RLIMIT_FSIZE, &files) || files.rlim_max != 4096 || pwrite(file, "", 1, 4095) != 1)
		return 6;
	if (getsid(0) != getpid())
		return 8;
	if (prctl(PR_GET_DUMPABLE) || getuid() == user || getuid() == NOBODY || may("/etc/shadow", O_RDONLY))
		return 9;
	if ((uid_t)setfsuid((uid_t)-1) != (user ? user : getuid()))
		return 10;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)other);
	if (may(path, O_RDWR) || may(path, O_RDONLY))
		return 12;
	if (syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) != -1 || unshare(CLONE_NEWUSER) != -1)
		return 11;
	if (execl("/bin/true", "true", NULL) != -1 || errno != EPERM)
		return 13;
	int pair[2];
	return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? 7 : 0; /* with its own children it may speak */
}

/* One that others of the user may open. */
static pid_t process_of(uid_t user)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t process = fork();
	if (process == 0) {
		if (setgid(user) || setuid(user) || prctl(PR_SET_DUMPABLE, 1) || write(ready[1], "", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return process;
}

static const uid_t users[] = { 0, USER }; /* whose files are read */

static void test_rights_drop_leaves_reading(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
		const struct rights rights = rights_of(users[i]);
		int file = memfd_create("result", 0);
		if (geteuid() != 0)
			skip();
		pid_t other = process_of(USER), child = fork();
		if (child == 0)
			_exit(rights_drop(&rights) ? 2 : try_as_reader(users[i], file, other));
		assert_int_equal(end_of(child), 0);
		kill(other, SIGKILL);
		assert_int_equal(end_of(other), -SIGKILL);
		close(file);
	}
}

/* What others of the user for whom it reads can do to the process, and of nobody. */
static int try_as_thief(uid_t user, pid_t reader)
{
	char path[40];

	if (setgid(user) || setuid(user))
		return 2;
	int pidfd = (int)syscall(SYS_pidfd_open, reader, 0);
	if (pidfd < 0 || syscall(SYS_pidfd_getfd, pidfd, 0, 0) != -1 || errno != EPERM)
		return 3;
	if (ptrace(PTRACE_SEIZE, reader, 0, 0) != -1 || kill(reader, SIGSTOP) != -1)
		return 4;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)reader);
	return may(path, O_RDONLY) ? 5 : 0;
}

static void test_rights_drop_leaves_nothing_to_take(void **state)
{
	const uid_t thieves[] = { USER, NOBODY };

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
		const struct rights rights = rights_of(users[i]);
		int ready[2];
		char byte;
		assert_int_equal(pipe(ready), 0);
		pid_t reader = fork();
		if (reader == 0) {
			if (rights_drop(&rights) || write(ready[1], "", 1) != 1)
				_exit(2);
			for (;;)
				pause();
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		for (size_t k = 0; k < sizeof thieves / sizeof thieves[0]; k++) {
			pid_t thief = fork();
			if (thief == 0)
				_exit(try_as_thief(thieves[k], reader));
			assert_int_equal(end_of(thief), 0);
		}
		kill(reader, SIGKILL);
		assert_int_equal(end_of(reader), -SIGKILL);
		close(ready[0]);
		close(ready[1]);
	}
}

/* Files of the user, of root, and of root for a group that root has. */
static void make_files(char directory[], char paths[3][64])
{
	const struct {
		uid_t uid;
		gid_t gid;
		mode_t mode;
	} files[3] = { { USER, USER, 0600 }, { 0, 0, 0600 }, { 0, 42, 0640 } };

	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 0755), 0);
	for (int i = 0; i < 3; i++) {
		snprintf(paths[i], 64, "%s/%d", directory, i);
		int fd = open(paths[i], O_CREAT | O_RDWR, 0600);
		assert_true(fd >= 0);
		assert_int_equal(fchown(fd, files[i].uid, files[i].gid), 0);
		assert_int_equal(fchmod(fd, files[i].mode), 0);
		close(fd);
	}
}

static void test_rights_lend_opens_what_the_user_may(void **state)
{
	char directory[] = "/tmp/rights.XXXXXX", paths[3][64];
	const gid_t group = 42;

	(void)state;
	if (geteuid() != 0)
		skip();
	make_files(directory, paths);
	for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
		const struct rights rights = rights_of(users[i]);
		pid_t child = fork();
		if (child == 0) {
			if (syscall(SYS_setgroups, 1, &group) || rights_lend(&rights))
				_exit(100);
			int opened = may(paths[0], O_RDONLY) | may(paths[1], O_RDONLY) << 1 |
			             may(paths[2], O_RDONLY) << 2;
			/* Then as before, for its last step. */
			_exit(rights_drop(&rights) ? 101 : opened | may(paths[users[i] ? 0 : 1], O_RDONLY) << 3);
		}
		/* Root's own files are root's also without capabilities; afterwards it is nobody who reads. */
		assert_int_equal(end_of(child), users[i] ? 1 | 8 : 2 | 4);
	}
	for (int i = 0; i < 3; i++)
		unlink(paths[i]);
	rmdir(directory);
}

static int without(unsigned capability)
{
	return rights_set_capabilities(rights_capabilities() & ~(1ull << capability));
}

static void test_rights_drop_refuses_the_groups_of_root(void **state)
{
	const unsigned needed[] = { CAP_SETGID, CAP_SETUID };

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
		const struct rights rights = rights_of(USER);
		pid_t child = fork();
		if (child == 0)
			_exit(without(needed[i]) ? 2 : rights_drop(&rights) != -EPERM);
		assert_int_equal(end_of(child), 0);
	}
}

static int try_as_view(void)
{
	char byte = 'x';

	if (getuid() == 0 || getuid() == NOBODY || prctl(PR_GET_DUMPABLE))
		return 3;
	if (ioctl(0, TIOCSTI, &byte) != -1 || chmod("/tmp", 0777) != -1 || truncate("/tmp/none", 0) != -1 ||
	    errno != ENOSYS)
		return 4;
	if (unshare(CLONE_NEWUSER) != -1 || syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) != -1 ||
	    socket(AF_UNIX, SOCK_STREAM, 0) != -1 || execl("/bin/true", "true", NULL) != -1)
		return 5;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		return 6;
	pid_t own = fork(); /* and processes of its own */
	if (own == 0)
		_exit(7);
	int status;
	return waitpid(own, &status, 0) == own && WEXITSTATUS(status) == 7 ? 0 : 8;
}

static void test_rights_drop_to_view_leaves_drawing(void **state)
{
	(void)state;
	if (geteuid() != 0 || SANITIZED)
		skip();
	pid_t child = fork();
	if (child == 0)
		_exit(rights_drop_to_view() ? 2 : try_as_view());
	assert_int_equal(end_of(child), 0);
}

/* Numbers that mean other calls than those of the list: on x86-64 those of x32 programs. */
static void test_rights_drop_ends_at_calls_of_no_such_program(void **state)
{
	const struct rights rights = rights_of(USER);

	(void)state;
	pid_t child = fork();
	if (child == 0)
		_exit(rights_drop(&rights) ? 2 : syscall((long)(CALLS_END | SYS_getpid)) == -1 ? 0 : 3);
	assert_int_equal(end_of(child), -SIGSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights_parse_takes_what_format_wrote),
		cmocka_unit_test(test_rights_drop_leaves_reading),
		cmocka_unit_test(test_rights_drop_leaves_nothing_to_take),
		cmocka_unit_test(test_rights_lend_opens_what_the_user_may),
		cmocka_unit_test(test_rights_drop_refuses_the_groups_of_root),
		cmocka_unit_test(test_rights_drop_to_view_leaves_drawing),
		cmocka_unit_test(test_rights_drop_ends_at_calls_of_no_such_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
