/* SPDX-License-Identifier: MIT */
/* All threads stopped at one moment: who handles a signal for the process that came meanwhile. */
#include "touch/threads/stop_all.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/clocks.h"
#include "process/target.h"
#include "touch/threads/let_go.h"
#include "threads_fixture.h"

#define OTHERS 3
#define ROUNDS 50

static _Atomic unsigned *handled; /* by the first thread, and by others; shared with the child */

static void handle(int number)
{
	(void)number;
	handled[gettid() != getpid()]++;
}

static thread_work sleeps(uintptr_t number)
{
	(void)number;
	return threads_sleep;
}

/*
 * Without memattach the kernel gives each of them to the first thread. On a busy machine that may not get its turn in
 * LET_GO_FIRST_NS; then the others are not kept waiting, and such a round tells nothing.
 */
static void test_stop_all_end_lets_the_first_thread_handle_signals(void **state)
{
	const struct stop_all_sharers none = { 0 };
	signal(SIGUSR1, handle); /* inherited */
	const pid_t pid = threads_start(OTHERS, sleeps, (void **)&handled);
	const struct target target = { .pid = pid };
	uint64_t longest_ns = 0;
	unsigned in_time = 0;
	struct stop_all all;
	struct err e;

	(void)state;
	for (unsigned i = 1; in_time < ROUNDS; i++) {
		int rc;
		do /* on a busy machine one may not come to its stop in time */
			rc = stop_all(&all, &target, &none, &longest_ns, &e);
		while (rc == -EAGAIN);
		assert_int_equal(rc, 0);
		assert_int_equal(all.count, OTHERS + 1);
		assert_int_equal(kill(pid, SIGUSR1), 0);
		const unsigned by_others = handled[1];
		const uint64_t since_ns = clock_monotonic_ns();
		stop_all_end(&all, &longest_ns);
		const bool late = clock_monotonic_ns() - since_ns >= LET_GO_FIRST_NS;
		while (handled[0] + handled[1] < i)
			usleep(100);
		assert_true(late || handled[1] == by_others);
		in_time += !late;
	}
	threads_end(pid, (void *)handled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stop_all_end_lets_the_first_thread_handle_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
