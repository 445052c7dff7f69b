/* SPDX-License-Identifier: MIT */
#include "touch/threads/tracer.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "touch/threads/let_go.h"
#include "host/clocks.h"

#define END_PAUSE_NS 20000 /* between looks for the end of the thread */

struct run {
	int (*step)(void *context);
	void *context;
	sigset_t mask;
	int rc;
	pid_t tid;
};

static _Thread_local bool runs;

bool tracer_runs(void)
{
	return runs;
}

static void *trace(void *context)
{
	struct run *r = context;

	runs = true;
	r->tid = gettid();
	sigaddset(&r->mask, SIGCHLD); /* let_go.c waits for it, and reap.c takes it where it wants to */
	pthread_sigmask(SIG_SETMASK, &r->mask, NULL);
	r->rc = r->step(r->context);
	let_go_finish();
	return NULL;
}

int tracer_run(int (*step)(void *context), void *context)
{
	struct run r = { .step = step, .context = context };
	sigset_t all;
	pthread_t thread;

	if (runs)
		return step(context);
	/* The signals that interrupt waits are for the thread that waits. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &r.mask);
	const sigset_t before = r.mask;
	if (pthread_create(&thread, NULL, trace, &r) != 0) {
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		return step(context);
	}
	pthread_join(thread, NULL);
	/* The kernel lets go of its tracees after that, and before it is gone. */
	while (tgkill(getpid(), r.tid, 0) == 0)
		clock_pause(END_PAUSE_NS);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r.rc;
}
