/* SPDX-License-Identifier: MIT */
/* Each case is a child that plays memattach: its end tells what the watchdog did. */
#include "host/watchdog.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define WELL 7
#define PAUSE_MS 1800u /* longer than a call may last after two signals */

static void nap(unsigned ms)
{
	struct timespec rest = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	while (nanosleep(&rest, &rest) < 0)
		;
}

static int end_of(void (*child)(void), char *said, size_t size)
{
	int status, ends[2];
	struct err e;

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDERR_FILENO);
		close(ends[1]);
		if (watchdog_start(4711, &e) < 0)
			_exit(1);
		child();
		_exit(WELL);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	ssize_t n = read(ends[0], said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	return status;
}

static void assert_killed(void (*child)(void))
{
	char said[512];
	int status = end_of(child, said, sizeof said);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_non_null(strstr(said, "finish with memattach --detach -p 4711"));
}

static void assert_well(void (*child)(void))
{
	char said[512];
	int status = end_of(child, said, sizeof said);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WELL);
	assert_string_equal(said, "");
}

static void make_call_for_ever(void)
{
	watchdog_call_begin();
	for (;;)
		pause();
}

static void call_after_a_signal(void)
{
	kill(getpid(), SIGINT);
	make_call_for_ever();
}

static void call_after_two_signals(void)
{
	kill(getpid(), SIGINT);
	nap(500);
	kill(getpid(), SIGINT);
	make_call_for_ever();
}

static void call_while_held(void)
{
	watchdog_hold(true);
	make_call_for_ever();
}

static void test_a_call_that_does_not_end_is_ended(void **state)
{
	(void)state;
	assert_killed(call_after_a_signal);
	assert_killed(call_after_two_signals);
	assert_killed(call_while_held);
}

static void many_calls(void)
{
	kill(getpid(), SIGTERM);
	watchdog_hold(true);
	for (unsigned i = 0; i < 8 * PAUSE_MS; i++) {
		watchdog_call_begin();
		watchdog_call_end();
		nap(i % 8 == 0);
	}
}

static void long_call_of_nobodys_concern(void)
{
	watchdog_hold(true);
	watchdog_hold(false);
	watchdog_call_begin();
	nap(2 * PAUSE_MS);
	watchdog_call_end();
}

/* As a thread does that no processor is left for. */
static void be_ready_to_run_in_a_call(void)
{
	time_t end = time(NULL) + 5;

	watchdog_hold(true);
	watchdog_call_begin();
	while (time(NULL) < end)
		;
	watchdog_call_end();
}

static void test_who_waits_for_a_processor_goes_on(void **state)
{
	(void)state;
	assert_well(be_ready_to_run_in_a_call);
}

/* As where the memory of the target is being mapped. */
static void slow_call_after_a_signal(void)
{
	kill(getpid(), SIGINT);
	watchdog_call_begin();
	nap(2 * PAUSE_MS);
	watchdog_call_end();
}

static void test_who_makes_progress_goes_on(void **state)
{
	(void)state;
	assert_well(many_calls);
	assert_well(long_call_of_nobodys_concern);
	assert_well(slow_call_after_a_signal);
}

static void count_signals(void)
{
	struct pollfd asked = { .fd = watchdog_fd(), .events = POLLIN };

	if (watchdog_asked() || poll(&asked, 1, 0) != 0)
		_exit(2);
	kill(getpid(), SIGINT);
	kill(getpid(), SIGHUP); /* at once: the same wish */
	asked.fd = watchdog_fd();
	if (poll(&asked, 1, -1) != 1)
		_exit(3);
	nap(1000);
	if (watchdog_asked() != 1 || watchdog_asked_twice())
		_exit(4);
	kill(getpid(), SIGINT);
	while (!watchdog_asked_twice())
		nap(10);
}

static void test_signals_are_counted(void **state)
{
	(void)state;
	assert_well(count_signals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_call_that_does_not_end_is_ended),
		cmocka_unit_test(test_who_waits_for_a_processor_goes_on),
		cmocka_unit_test(test_who_makes_progress_goes_on),
		cmocka_unit_test(test_signals_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
