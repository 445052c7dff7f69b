/* SPDX-License-Identifier: MIT */
/* Which calls a stop would harm, by children that sleep in them. */
#include "process/blocked_call.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char buffer[1 << 20];

static long call(const long c[7])
{
	return syscall(c[0], c[1], c[2], c[3], c[4], c[5], c[6]);
}

/* A child that sleeps in the call, again and again. */
static pid_t start(const long c[7])
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			call(c);
	}
	assert_true(pid > 0);
	return pid;
}

static void await(struct sleeper *s, pid_t pid, bool any)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (unsigned i = 0; i < 20000 && !sleeper_look(s, pid, pid, any); i++)
		nanosleep(&pause, NULL);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void check(enum stop_effect expected, const char *name, const long c[7])
{
	char said[BLOCKED_CALL_NAME];
	struct sleeper s;
	pid_t pid = start(c);

	await(&s, pid, true);
	assert_string_equal(blocked_call_name(&s.call, said), name);
	assert_int_equal(blocked_call_effect(&s.call, pid, pid), expected);
	assert_true(sleeper_sleeps(&s));
	assert_int_equal(sleeper_look(&s, pid, pid, false), expected == STOP_LESS);
	end(pid);
}
#define CHECK(expected, name, ...) check(expected, name, (const long[7]){ __VA_ARGS__ })

static void test_blocked_call_effect_depends_on_the_call_and_its_arguments(void **state)
{
	int in[2], out[2], pair[2];
	static const uint64_t no_signals;
	const long memory = (long)(uintptr_t)buffer;

	(void)state;
	assert_int_equal(pipe(in) + pipe(out) + socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	/* One page is left. */
	assert_true(write(out[1], buffer, 65536 - 4096) > 0);
	CHECK(STOP_NONE, "rt_sigsuspend(2)", SYS_rt_sigsuspend, (long)(uintptr_t)&no_signals, sizeof no_signals);
	CHECK(STOP_NONE, "read(2)", SYS_read, in[0], memory, sizeof buffer);
	CHECK(STOP_NONE, "recvfrom(2)", SYS_recvfrom, pair[0], memory, sizeof buffer, 0);
	CHECK(STOP_LESS, "recvfrom(2)", SYS_recvfrom, pair[0], memory, sizeof buffer, MSG_WAITALL);
	CHECK(STOP_LESS, "write(2)", SYS_write, out[1], memory, sizeof buffer);
	CHECK(STOP_NONE, "write(2)", SYS_write, out[1], memory, 4096);
}

static void test_sleeper_sleeps_tells_of_each_new_sleep(void **state)
{
	const struct timespec often = { .tv_nsec = 1000000 }, while_it_changes = { .tv_nsec = 50000000 };
	struct sleeper s;
	pid_t pid = start((const long[7]){ SYS_nanosleep, (long)(uintptr_t)&often, 0 });

	(void)state;
	await(&s, pid, true);
	nanosleep(&while_it_changes, NULL);
	assert_false(sleeper_sleeps(&s));
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocked_call_effect_depends_on_the_call_and_its_arguments),
		cmocka_unit_test(test_sleeper_sleeps_tells_of_each_new_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
