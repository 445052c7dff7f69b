/* SPDX-License-Identifier: MIT */
#include "touch/remote/channel.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_NS 20000000000ull

/* A seized process that plays the borrowed thread, and our end. */
struct meeting {
	struct channel channel;
	struct tracee thread;
};

static int say(int end, unsigned char checkpoint)
{
	unsigned char answer = 1;

	if (send(end, &checkpoint, 1, MSG_NOSIGNAL) != 1)
		return -1;
	return (int)recv(end, &answer, 1, 0);
}

/* 1, 2, 3, …; ends when nobody answers, with the number of the last checkpoint. */
static void counts(int end)
{
	for (unsigned char i = 1;; i++)
		if (say(end, i) != 1)
			_exit(i);
}

static void closes(int end)
{
	close(end);
	for (;;)
		pause();
}

static void says_nothing(int end)
{
	(void)end;
	for (;;)
		pause();
}

/* Waits in its own stop until it is resumed. */
static void setup(struct meeting *m, void (*body)(int end))
{
	enum tracee_stop stop;
	struct err e;
	int other;

	*m = (struct meeting){ .channel = CHANNEL_NONE };
	assert_int_equal(channel_open(&m->channel, &other, &e), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(m->channel.here);
		raise(SIGSTOP);
		body(other);
	}
	close(other);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	assert_int_equal(tracee_seize(&m->thread, pid, pid, false, &e), 0);
	kill(pid, SIGCONT);
	assert_int_equal(tracee_interrupt(&m->thread, clock_monotonic_ns() + PATIENCE_NS, &stop, &e), 0);
}

static int meet(struct meeting *m, unsigned *checkpoint, struct err *e)
{
	return channel_meet(&m->channel, &m->thread, checkpoint, clock_monotonic_ns() + PATIENCE_NS, e);
}

static void part(struct meeting *m)
{
	tracee_detach(&m->thread);
	channel_close(&m->channel);
}

static int end_status(struct meeting *m)
{
	int status = 0;

	assert_int_equal(waitpid(m->thread.tid, &status, 0), m->thread.tid);
	return status;
}

static void test_checkpoints_come_one_by_one(void **state)
{
	struct meeting m;
	struct err e;
	unsigned checkpoint = 0;

	(void)state;
	setup(&m, counts);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(meet(&m, &checkpoint, &e), 0);
		assert_int_equal(checkpoint, i);
		struct pollfd end = { .fd = m.channel.here, .events = POLLIN };
		assert_int_equal(poll(&end, 1, 20), 0); /* it waits for its answer */
	}
	part(&m);
	int status = end_status(&m);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
}

/* The process is stopped and continued by job control while memattach waits: that is passed, as at any other stop. */
static void test_job_control_is_passed(void **state)
{
	struct meeting m;
	struct err e;
	unsigned checkpoint = 0;

	(void)state;
	setup(&m, counts);
	assert_int_equal(meet(&m, &checkpoint, &e), 0);
	kill(m.thread.tid, SIGSTOP);
	for (unsigned i = 2; i <= 4; i++) {
		assert_int_equal(meet(&m, &checkpoint, &e), 0);
		assert_int_equal(checkpoint, i);
	}
	kill(m.thread.tid, SIGCONT);
	part(&m);
	assert_true(WIFEXITED(end_status(&m)));
}

static void test_a_thread_that_is_killed_has_ended(void **state)
{
	struct meeting m;
	struct err e;
	unsigned checkpoint = 0;

	(void)state;
	setup(&m, counts);
	assert_int_equal(meet(&m, &checkpoint, &e), 0);
	kill(m.thread.tid, SIGKILL);
	assert_int_equal(meet(&m, &checkpoint, &e), -ESRCH);
	part(&m);
}

static void test_a_closed_end_is_told_from_an_ended_thread(void **state)
{
	struct meeting m;
	struct err e;
	unsigned checkpoint = 0;

	(void)state;
	setup(&m, closes);
	assert_int_equal(meet(&m, &checkpoint, &e), -EPROTO);
	assert_non_null(strstr(e.text, "closed a descriptor"));
	part(&m);
	kill(m.thread.tid, SIGKILL);
	end_status(&m);
}

static void test_the_deadline_is_kept(void **state)
{
	struct meeting m;
	struct err e;
	unsigned checkpoint = 0;
	uint64_t deadline = clock_monotonic_ns() + PATIENCE_NS / 1000;

	(void)state;
	setup(&m, says_nothing);
	assert_int_equal(channel_meet(&m.channel, &m.thread, &checkpoint, deadline, &e), -ETIMEDOUT);
	assert_true(clock_monotonic_ns() >= deadline);
	part(&m);
	kill(m.thread.tid, SIGKILL);
	end_status(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checkpoints_come_one_by_one),
		cmocka_unit_test(test_job_control_is_passed),
		cmocka_unit_test(test_a_thread_that_is_killed_has_ended),
		cmocka_unit_test(test_a_closed_end_is_told_from_an_ended_thread),
		cmocka_unit_test(test_the_deadline_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
