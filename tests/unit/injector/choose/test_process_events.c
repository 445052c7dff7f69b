/* SPDX-License-Identifier: MIT */
/* The kernel's word that processes begin, where it gives it. */
#include <poll.h>
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

static bool comes(struct process_events *p, int ms)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };

	return poll(&fd, 1, ms) > 0;
}

static void test_take_hears_of_a_new_process(void **state)
{
	(void)state;
	struct process_events p;
	bool begun = false;

	process_events_open(&p);
	if (p.fd >= 0 && comes(&p, SOON_MS))
		process_events_take(&p);
	if (!p.works) {
		print_message("the kernel tells no events of processes here\n");
		process_events_close(&p);
		skip();
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take_hears_of_a_new_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
