/* SPDX-License-Identifier: MIT */
/* All threads stopped at one moment: who handles a signal for the process that came meanwhile. */
#include "touch/threads/stop_all.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/target.h"

#define OTHERS 3
#define ROUNDS 50

static _Atomic unsigned *handled; /* by the first thread, and by others; shared with the child */

static void handle(int number)
{
	(void)number;
	handled[gettid() != getpid()]++;
}

static void *sleep_on(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static pid_t start_target(void)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	handled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(handled, MAP_FAILED);
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t thread;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, handle);
		for (unsigned i = 0; i < OTHERS; i++)
			if (pthread_create(&thread, NULL, sleep_on, NULL))
				_exit(1);
		if (write(ready[1], "", 1) == 1)
			sleep_on(NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_target(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	munmap((void *)handled, 4096);
}

/* Without memattach the kernel gives each of them to the first thread. */
static void test_stop_all_end_lets_the_first_thread_handle_signals(void **state)
{
	const struct stop_all_sharers none = { 0 };
	const pid_t pid = start_target();
	const struct target target = { .pid = pid };
	uint64_t longest_ns = 0;
	struct stop_all all;
	struct err e;

	(void)state;
	for (unsigned i = 1; i <= ROUNDS; i++) {
		int rc;
		do /* on a busy machine one may not come to its stop in time */
			rc = stop_all(&all, &target, &none, &longest_ns, &e);
		while (rc == -EAGAIN);
		assert_int_equal(rc, 0);
		assert_int_equal(all.count, OTHERS + 1);
		assert_int_equal(kill(pid, SIGUSR1), 0);
		stop_all_end(&all, &longest_ns);
		while (handled[0] + handled[1] < i)
			usleep(100);
	}
	assert_int_equal(handled[1], 0);
	end_target(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stop_all_end_lets_the_first_thread_handle_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
