/* SPDX-License-Identifier: MIT */
/* What a hostile program may put in the place of the two numbers: here this process is the program. */
#include "touch/remote/borrowed_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int take(const int32_t numbers[2])
{
	struct borrowed_pair pair;
	struct err e;
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	assert_true(pidfd >= 0);
	int rc = borrowed_pair_take(&pair, pidfd, getpid(), numbers, &e);
	close(pidfd);
	if (rc == 0)
		borrowed_pair_close(&pair);
	return rc;
}

static void make(int type, int32_t ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
}

static void drop(const int32_t ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static bool is_empty(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void test_a_pair_is_taken_and_empty(void **state)
{
	int32_t ends[2];

	(void)state;
	make(SOCK_SEQPACKET, ends);
	assert_int_equal(take(ends), 0);
	assert_true(is_empty(ends[0]) && is_empty(ends[1]));
	drop(ends);
}

static void test_what_is_no_such_pair_is_refused(void **state)
{
	int32_t one[2], other[2], stream[2], tube[2];

	(void)state;
	make(SOCK_SEQPACKET, one);
	make(SOCK_SEQPACKET, other);
	make(SOCK_STREAM, stream);
	assert_int_equal(pipe(tube), 0);
	assert_int_equal(take((const int32_t[]){ one[0], other[1] }), -EPROTO);
	assert_int_equal(take((const int32_t[]){ one[0], one[0] }), -EPROTO);
	assert_int_equal(take(stream), -EPROTO);
	assert_int_equal(take(tube), -EPROTO);
	assert_int_equal(take((const int32_t[]){ one[0], -1 }), -EBADF);
	assert_int_equal(take((const int32_t[]){ 1000000, one[1] }), -EBADF);
	drop(one);
	drop(other);
	drop(stream);
	drop(tube);
}

static void test_what_waits_or_is_full_is_refused(void **state)
{
	int32_t ends[2];

	(void)state;
	make(SOCK_SEQPACKET, ends);
	assert_int_equal(send(ends[1], "x", 1, 0), 1);
	assert_int_equal(take(ends), -EPROTO);
	while (send(ends[1], "x", 1, MSG_DONTWAIT) == 1)
		;
	assert_int_equal(take(ends), -EPROTO);
	drop(ends);
}

/* A service of another process: it hears nothing. */
static void test_a_socket_of_another_process_is_sent_nothing(void **state)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int32_t ends[2];
	int status, ready[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	strncpy(name.sun_path + 1, "memattach-test-borrowed-pair", sizeof name.sun_path - 2);
	pid_t service = fork();
	if (service == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (bind(listener, (const struct sockaddr *)&name, sizeof name) || listen(listener, 1) ||
		    write(ready[1], "r", 1) != 1)
			_exit(2);
		int client = accept(listener, NULL, NULL);
		_exit(recv(client, &byte, 1, 0) == 0 ? 0 : 1); /* the end of the stream, and nothing before */
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	make(SOCK_SEQPACKET, ends);
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (const struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(take((const int32_t[]){ ends[0], client }), -EPROTO);
	close(client);
	drop(ends);
	assert_int_equal(waitpid(service, &status, 0), service);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pair_is_taken_and_empty),
		cmocka_unit_test(test_what_is_no_such_pair_is_refused),
		cmocka_unit_test(test_what_waits_or_is_full_is_refused),
		cmocka_unit_test(test_a_socket_of_another_process_is_sent_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
