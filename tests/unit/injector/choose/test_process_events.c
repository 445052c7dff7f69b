/* SPDX-License-Identifier: MIT */
/* The kernel's word that processes begin, where it gives it. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "choose/process_events.h"

#define SOON_MS 1000
#define LATE_MS 60000
#define FORKS 500u /* more than a socket usually keeps */

static bool comes(struct process_events *p, int ms)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };

	return poll(&fd, 1, ms) > 0;
}

static void open_or_skip(struct process_events *p)
{
	process_events_open(p);
	if (p->fd >= 0 && comes(p, SOON_MS))
		process_events_take(p);
	if (p->works)
		return;
	print_message("the kernel tells no events of processes here\n");
	process_events_close(p);
	skip();
}

static void test_take_hears_of_a_new_process(void **state)
{
	(void)state;
	struct process_events p = { 0 };
	bool begun = false;

	open_or_skip(&p);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	while (!begun && comes(&p, LATE_MS))
		begun = process_events_take(&p);
	waitpid(child, NULL, 0);
	assert_true(begun);
	process_events_close(&p);
	assert_int_equal(p.fd, -1);
}

static void count_own(void *context, pid_t parent)
{
	*(unsigned *)context += parent == getpid();
}

static void *nothing(void *argument)
{
	return argument;
}

/* Each is told, those of threads are not. */
static void test_take_counts_forks(void **state)
{
	(void)state;
	unsigned forks = 0;
	struct process_events p = { .forked = count_own, .context = &forks };

	open_or_skip(&p);
	for (unsigned i = 0; i < FORKS; i++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
		pthread_join(thread, NULL);
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	process_events_take(&p);
	process_events_close(&p);
	assert_int_equal(forks, FORKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take_hears_of_a_new_process),
		cmocka_unit_test(test_take_counts_forks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
