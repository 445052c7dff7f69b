/* SPDX-License-Identifier: MIT */
/* Each case is tried by a process in the jail, which ends with 0 where all is as it should be, else with the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "debug_info/jail.h"

#define FILE_BYTES (100ll << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool under_sanitizer = true; /* which has memory of its own */
#else
static const bool under_sanitizer = false;
#endif

#define EXPECT(what)                                                                                                   \
	do {                                                                                                           \
		if (!(what))                                                                                           \
			_exit(__LINE__ % 251 + 1);                                                                     \
	} while (0)

static char directory[] = "/tmp/jail-test.XXXXXX";

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(directory) || chdir(directory) || mkfifo("fifo", 0600))
		return -1;
	int fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 || write(fd, "text", 4) != 4 || ftruncate(fd, FILE_BYTES) || close(fd);
}

static int take_away(void **state)
{
	(void)state;
	return unlink("fifo") || unlink("file") || chdir("/") || rmdir(directory);
}

static void in_jail(void (*try)(void))
{
	int pair[2], status;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct err e;
		alarm(120);
		EXPECT(!jail_enter(pair[1], &(struct jail_files){ 0 }, &e));
		try();
		_exit(0);
	}
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void open_files(void)
{
	char text[4];
	int fd = open("file", O_RDONLY | O_CLOEXEC);

	EXPECT(fd >= 0 && read(fd, text, 4) == 4 && !memcmp(text, "text", 4));
	EXPECT(open("fifo", O_RDONLY) < 0 && errno == ENOENT);
	EXPECT(open("/dev/null", O_RDONLY) < 0 && errno == ENOENT);
	EXPECT(open("/tmp", O_RDONLY | O_DIRECTORY) < 0 && errno == ENOENT);
	EXPECT(open("nothing", O_RDONLY) < 0 && errno == ENOENT);
	EXPECT(open("file", O_RDWR) < 0 && errno == EACCES);
	EXPECT(open("file", O_RDWR | O_NONBLOCK | O_NOCTTY) < 0 && errno == EACCES);
	EXPECT(open("new", O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
	EXPECT(open("file", O_RDONLY | O_TRUNC) < 0 && errno == EACCES);
	EXPECT(unlink("file") < 0 && errno == EPERM);
}

static void test_only_regular_files_are_opened(void **state)
{
	(void)state;
	in_jail(open_files);
}

static void *nothing(void *arg)
{
	return arg;
}

static void do_other_things(void)
{
	pthread_t thread;

	EXPECT(fork() < 0 && errno == EPERM);
	EXPECT(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
	EXPECT(kill(getppid(), 0) < 0 && errno == EPERM);
	EXPECT(execl("/bin/true", "true", NULL) < 0 && errno == EPERM);
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
	       errno == EPERM);
	EXPECT(fcntl(JAIL_DESCRIPTOR, F_GETFD) >= 0 && fcntl(JAIL_DESCRIPTOR + 1, F_GETFD) < 0);
	EXPECT(pthread_create(&thread, NULL, nothing, NULL) == EPERM);
	EXPECT(memfd_create("memory", 0) < 0 && errno == EPERM);
}

static void test_nothing_but_reading_is_possible(void **state)
{
	(void)state;
	in_jail(do_other_things);
}

static uint64_t limit_of(int what)
{
	struct rlimit limit;

	EXPECT(!getrlimit(what, &limit));
	return limit.rlim_cur;
}

static void use_memory_and_time(void)
{
	uint64_t data = limit_of(RLIMIT_DATA);

	EXPECT(limit_of(RLIMIT_CPU) == JAIL_CPU_SECONDS);
	EXPECT(under_sanitizer || mmap(NULL, JAIL_MEMORY_BYTES + (64u << 20), PROT_READ | PROT_WRITE,
	                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	EXPECT(open("file", O_RDONLY) >= 0);
	EXPECT(under_sanitizer || limit_of(RLIMIT_DATA) == data + JAIL_FILE_FACTOR * FILE_BYTES);
	EXPECT(limit_of(RLIMIT_CPU) == JAIL_CPU_SECONDS + FILE_BYTES / JAIL_CPU_BYTES);
	for (int i = 0; i < 1000; i++)
		jail_add_time(2);
	EXPECT(limit_of(RLIMIT_CPU) == JAIL_CPU_SECONDS + FILE_BYTES / JAIL_CPU_BYTES + 2);
}

static void test_limits_go_with_the_files(void **state)
{
	(void)state;
	in_jail(use_memory_and_time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_regular_files_are_opened),
		cmocka_unit_test(test_nothing_but_reading_is_possible),
		cmocka_unit_test(test_limits_go_with_the_files),
	};
	return cmocka_run_group_tests(tests, make, take_away);
}
