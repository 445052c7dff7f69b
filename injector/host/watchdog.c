/* SPDX-License-Identifier: MIT */
#include "host/watchdog.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "files/whole_io.h"
#include "host/clocks.h"
#include "host/stop_signals.h"

#define CALLERS 16u        /* threads that make calls: the main one, and a few that compile */
#define ASKED_TICK_MS 250u /* looks at the calls, after a signal */
#define ASKED_TICKS 40u    /* in which a call may last */
#define AGAIN_TICKS 4u     /* after the second */
#define HELD_TICK_MS 500u  /* the same while a thread is stopped */
#define HELD_TICKS 6u
#define SAME_NS 300000000ull /* signals that come so close are one */

/*
 * Odd while a call is made. One writer each, the watchdog reads; relaxed, because a value is only compared with the one
 * of the look before. Threads that have ended leave an even number to the next one.
 */
static atomic_uint calls[CALLERS];
static atomic_int tids[CALLERS]; /* whose they are */
static atomic_uint callers;
static _Thread_local atomic_uint *mine;

static atomic_uint asked, asked_by_user;
static atomic_int waiter; /* 0: none */
static atomic_bool holds;
static bool has_thread;
static int signals = -1, event = -1, timer = -1;
static char last_words[320];

void watchdog_call_begin(void)
{
	if (!mine) {
		unsigned number = atomic_fetch_add_explicit(&callers, 1, memory_order_relaxed);
		number = number < CALLERS ? number : 1 + number % (CALLERS - 1);
		mine = &calls[number];
		atomic_store_explicit(&tids[number], gettid(), memory_order_relaxed);
	}
	atomic_store_explicit(mine, atomic_load_explicit(mine, memory_order_relaxed) + 1, memory_order_relaxed);
}

void watchdog_call_end(void)
{
	watchdog_call_begin();
}

void watchdog_waits(bool waits)
{
	atomic_store_explicit(&waiter, waits ? gettid() : 0, memory_order_relaxed);
}

/* A clock would also run while memattach itself is stopped. */
struct look {
	unsigned seen[CALLERS];
	unsigned ticks[CALLERS];
};

/* It waits for a processor, or has one: the target does not keep it, and to end memattach would end nothing sooner. */
static bool is_ready(pid_t tid)
{
	char path[64], text[256];

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	if (whole_io_text(path, text, sizeof text) < 0)
		return false;
	const char *name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && name_end[2] == 'R';
}

/* True: one call was there at so many looks before this one, at which its thread was not ready to run. */
static bool lasts(struct look *l, unsigned ticks)
{
	bool found = false;

	for (unsigned i = 0; i < CALLERS; i++) {
		unsigned now = atomic_load_explicit(&calls[i], memory_order_relaxed);
		if (now % 2 == 0 || now != l->seen[i])
			l->ticks[i] = 0;
		else if (!is_ready(atomic_load_explicit(&tids[i], memory_order_relaxed)))
			l->ticks[i]++;
		l->seen[i] = now;
		found |= l->ticks[i] >= ticks;
	}
	return found;
}

static _Noreturn void end_by_sigkill(void)
{
	(void)!write(STDERR_FILENO, last_words, strlen(last_words));
	for (;;)
		kill(getpid(), SIGKILL);
}

static void hear(void)
{
	static uint64_t last_ns;
	struct signalfd_siginfo info;
	const uint64_t one = 1;
	uint64_t now = clock_monotonic_ns();

	if (read(signals, &info, sizeof info) != sizeof info)
		return;
	/* A --detach asks for the end, as the first signal of a user does, and for nothing more (other_session.c). */
	bool by_user = info.ssi_code != SI_QUEUE, first = atomic_load_explicit(&asked, memory_order_relaxed) == 0;
	if (first || (by_user && now - last_ns >= SAME_NS)) {
		atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&asked_by_user, by_user, memory_order_relaxed);
	}
	last_ns = now;
	(void)!write(event, &one, sizeof one);
}

/* Of looks after so many signals, in which a call may last. */
static unsigned patience(unsigned signals_heard)
{
	if (signals_heard > 1)
		return AGAIN_TICKS;
	return atomic_load_explicit(&holds, memory_order_relaxed) ? HELD_TICKS * HELD_TICK_MS / ASKED_TICK_MS
	                                                          : ASKED_TICKS;
}

static void *watch(void *unused)
{
	struct pollfd fds[] = { { .fd = signals, .events = POLLIN }, { .fd = timer, .events = POLLIN } };
	struct look look = { 0 };
	uint64_t expired;

	for (;;) {
		unsigned before = atomic_load_explicit(&asked, memory_order_relaxed);
		int ready = poll(fds, before ? 1 : 2, before ? (int)ASKED_TICK_MS : -1);
		if (ready < 0)
			continue;
		if (ready > 0 && fds[0].revents)
			hear();
		else if (before ? lasts(&look, patience(before))
		                : read(timer, &expired, sizeof expired) == sizeof expired && lasts(&look, HELD_TICKS))
			end_by_sigkill();
		const pid_t tid = atomic_load_explicit(&waiter, memory_order_relaxed);
		if (atomic_load_explicit(&asked, memory_order_relaxed) > 1 && tid)
			tgkill(getpid(), tid, SIGALRM);
	}
	return unused;
}

static int start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_detach(thread);
	return rc;
}

int watchdog_start(pid_t target, struct err *e)
{
	sigset_t ends;

	if (event >= 0)
		return 0;
	snprintf(last_words, sizeof last_words,
	         "memattach: PID %d: reading or writing its memory does not end (userfaultfd, or a file system that "
	         "does not answer); memattach ends "
	         "here, and lets go of it; finish with memattach --detach -p %d\n",
	         target, target);
	stop_signals_list(&ends);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	event = eventfd(0, EFD_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (signals < 0 || event < 0 || timer < 0)
		return err_sys(e, "cannot wait for signals");
	has_thread = start_thread() == 0;
	return 0;
}

int watchdog_fd(void)
{
	return has_thread || atomic_load_explicit(&asked, memory_order_relaxed) ? event : signals;
}

unsigned watchdog_asked(void)
{
	if (!has_thread && signals >= 0)
		hear();
	return atomic_load_explicit(&asked, memory_order_relaxed);
}

unsigned watchdog_asked_by_user(void)
{
	watchdog_asked();
	return atomic_load_explicit(&asked_by_user, memory_order_relaxed);
}

bool watchdog_asked_twice(void)
{
	return watchdog_asked() > 1;
}

int watchdog_check(struct err *e)
{
	return watchdog_asked() ? err_set(e, EINTR, "interrupted") : 0;
}

void watchdog_hold(bool held)
{
	const struct itimerspec tick = { .it_value.tv_nsec = HELD_TICK_MS * 1000000,
		                         .it_interval.tv_nsec = HELD_TICK_MS * 1000000 },
				none = { 0 };

	atomic_store_explicit(&holds, held, memory_order_relaxed);
	if (has_thread)
		timerfd_settime(timer, 0, held ? &tick : &none, NULL);
}
