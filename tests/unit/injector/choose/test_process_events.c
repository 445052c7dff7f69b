/* SPDX-License-Identifier: MIT */
/* The kernel's word that processes begin, where it gives it. */
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "choose/process_events.h"

#define SOON_MS 1000
#define LATE_MS 60000
#define FORKS 500u
#define OFTEN 100u /* more than a socket usually keeps */
#define THREADS 10u

static bool comes(const struct process_events *p, int ms)
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

static void *nothing(void *argument)
{
	return argument;
}

static void make_thread(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
	pthread_join(thread, NULL);
}

static void make_child(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void test_take_hears_of_a_new_process(void **state)
{
	(void)state;
	struct process_events p = { 0 };
	bool begun = false;

	open_or_skip(&p);
	make_child();
	while (!begun && comes(&p, LATE_MS))
		begun = process_events_take(&p);
	assert_true(begun);
	process_events_close(&p);
	assert_int_equal(p.fd, -1);
}

static void count_own(void *context, pid_t parent)
{
	*(unsigned *)context += parent == getpid();
}

/* Each is told, those of threads are not. */
static void test_take_counts_forks(void **state)
{
	(void)state;
	unsigned forks = 0;
	struct process_events p = { .forked = count_own, .context = &forks };

	open_or_skip(&p);
	for (unsigned i = 0; i < FORKS; i++) {
		make_thread();
		make_child();
		if (i % OFTEN == 0) /* other processes begin and end as well */
			process_events_take(&p);
	}
	while (comes(&p, 0))
		process_events_take(&p);
	process_events_close(&p);
	assert_int_equal(forks, FORKS);
}

/* The next message that tells of this process. */
static struct proc_event next_own(const struct process_events *p)
{
	char bytes[1024] = "";
	struct proc_event event = { 0 };
	const size_t at = sizeof(struct nlmsghdr) + sizeof(struct cn_msg);
	bool own = false;

	while (!own) {
		assert_true(comes(p, LATE_MS));
		assert_true(recv(p->fd, bytes, sizeof bytes, 0) > (ssize_t)at);
		memcpy(&event, bytes + at, sizeof event);
		const pid_t of = (unsigned)event.what == PROC_EVENT_FORK ? event.event_data.fork.parent_tgid
		                                                         : event.event_data.exit.process_tgid;
		own = of == getpid();
	}
	return event;
}

/* Threads that come and go leave the socket's room to forks: of the children, not of them, is told. */
static void test_socket_keeps_no_threads(void **state)
{
	(void)state;
	struct process_events p = { 0 };

	open_or_skip(&p);
	for (unsigned i = 0; i < THREADS; i++)
		make_thread();
	make_child();
	const struct proc_event event = next_own(&p);
	process_events_close(&p);
	assert_int_equal(event.what, PROC_EVENT_FORK);
	assert_int_equal(event.event_data.fork.child_pid, event.event_data.fork.child_tgid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take_hears_of_a_new_process),
		cmocka_unit_test(test_take_counts_forks),
		cmocka_unit_test(test_socket_keeps_no_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
