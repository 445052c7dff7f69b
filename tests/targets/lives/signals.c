/* SPDX-License-Identifier: MIT */
/*
 * Queued real-time signals with running numbers, handled on an alternate stack by a thread that allocates: none may be
 * lost, doubled or reordered; masks, dispositions and the alternate stack stay as they were set; errno survives. An
 * interval timer interrupts at the same time.
 */
#include "victim.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int received; /* number of the last signal */
static atomic_ulong ticks;
static unsigned char alternate[65536];
static sigset_t expected_mask;

static void on_number(int signal_number, siginfo_t *info, void *context)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	int last = atomic_load(&received);

	(void)signal_number;
	(void)context;
	if (info->si_code != SI_QUEUE || info->si_pid != getpid())
		victim_wrong("a signal from nowhere: code %d, pid %d", info->si_code, (int)info->si_pid);
	if (info->si_value.sival_int != last + 1)
		victim_wrong("signal %d came after %d", info->si_value.sival_int, last);
	if (sp < (uintptr_t)alternate || sp >= (uintptr_t)alternate + sizeof alternate)
		victim_wrong("the handler does not run on the alternate stack");
	errno = 5;
	atomic_store(&received, info->si_value.sival_int);
}

static void on_tick(int signal_number)
{
	(void)signal_number;
	atomic_fetch_add(&ticks, 1);
}

static pthread_t receiver;

static void *send(void *argument)
{
	sigset_t all;
	int sent = 0;

	(void)argument;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!victim_done()) {
		union sigval value = { .sival_int = sent + 1 };
		int r = pthread_sigqueue(receiver, SIGRTMIN, value);
		if (r == EAGAIN)
			continue; /* the queue is full: the receiver is slow */
		if (r)
			victim_wrong("pthread_sigqueue: %s", strerror(r));
		sent++;
		struct timespec pause = { .tv_nsec = 200000 };
		nanosleep(&pause, NULL);
	}
	for (int i = 0; i < 5000 && atomic_load(&received) != sent; i++)
		usleep(1000);
	if (atomic_load(&received) != sent)
		victim_wrong("%d signals were sent, %d came", sent, atomic_load(&received));
	return NULL;
}

static void check_state(void)
{
	struct sigaction action;
	sigset_t mask;
	stack_t stack;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (int i = 1; i < 65; i++)
		if (i != 32 && i != 33 && sigismember(&mask, i) != sigismember(&expected_mask, i))
			victim_wrong("the mask changed at signal %d", i);
	sigaltstack(NULL, &stack);
	if (stack.ss_sp != alternate || stack.ss_size != sizeof alternate || stack.ss_flags)
		victim_wrong("the alternate stack changed");
	sigaction(SIGRTMIN, NULL, &action);
	if (action.sa_sigaction != on_number || !(action.sa_flags & SA_ONSTACK))
		victim_wrong("the disposition of SIGRTMIN changed");
	sigaction(SIGTRAP, NULL, &action);
	if (action.sa_handler != SIG_IGN)
		victim_wrong("the disposition of SIGTRAP changed");
	sigaction(SIGSEGV, NULL, &action);
	if (action.sa_handler != SIG_DFL)
		victim_wrong("the disposition of SIGSEGV changed");
}

int main(void)
{
	struct sigaction number = { .sa_sigaction = on_number, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	struct sigaction tick = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	struct itimerval interval = { .it_interval.tv_usec = 1000, .it_value.tv_usec = 1000 };
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
	uint64_t random = 123456789;
	pthread_t sender;

	victim_start("signals");
	receiver = pthread_self();
	sigaltstack(&stack, NULL);
	sigaction(SIGRTMIN, &number, NULL);
	sigaction(SIGALRM, &tick, NULL);
	signal(SIGTRAP, SIG_IGN);
	sigemptyset(&expected_mask);
	sigaddset(&expected_mask, SIGHUP);
	sigaddset(&expected_mask, SIGRTMIN + 5);
	sigprocmask(SIG_SETMASK, &expected_mask, NULL);
	setitimer(ITIMER_REAL, &interval, NULL);
	if (pthread_create(&sender, NULL, send, NULL))
		return 2;
	victim_ready();
	while (!victim_done()) {
		size_t bytes = 1 + victim_random(&random) % 1000;
		errno = 33;
		unsigned char *volatile p = malloc(bytes);
		if (p)
			memset(p, 7, bytes);
		free(p);
		if (errno != 33 && errno != 5)
			victim_wrong("errno is %d", errno);
		if (random % 64 == 0) {
			check_state();
			victim_round();
		}
	}
	pthread_join(sender, NULL);
	check_state();
	if (!atomic_load(&ticks))
		victim_wrong("the timer never fired");
	return victim_report();
}
