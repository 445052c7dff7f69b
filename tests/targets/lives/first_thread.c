/* SPDX-License-Identifier: MIT */
/* A timer's signals, which the kernel gives to the first thread as long as that does not block them; the others do not
 * block them, either, as those of a BLAS or a sanitizer. Prints at its end how many came, and to others. */
#include "victim.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define OTHERS 2
#define PERIOD_US 200

static atomic_ulong first, others;

static void on_tick(int number)
{
	(void)number;
	atomic_fetch_add(gettid() == getpid() ? &first : &others, 1);
}

static void nap(void)
{
	const struct timespec time = { .tv_nsec = 2000000 };

	nanosleep(&time, NULL);
}

static void *idle(void *unused)
{
	(void)unused;
	for (;;)
		nap();
	return NULL;
}

int main(void)
{
	const struct itimerval often = { { 0, PERIOD_US }, { 0, PERIOD_US } }, never = { 0 };
	const struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_NODEFER };
	uint64_t random = 88172645463325252u;
	pthread_t thread;

	victim_start("first_thread");
	for (unsigned i = 0; i < OTHERS; i++)
		if (pthread_create(&thread, NULL, idle, NULL))
			victim_wrong("no thread");
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	victim_ready();
	while (!victim_done()) {
		victim_block(&random);
		victim_round();
		nap();
	}
	setitimer(ITIMER_REAL, &never, NULL);
	victim_say("FIRST %lu OTHERS %lu", atomic_load(&first), atomic_load(&others));
	return victim_report();
}
