/* SPDX-License-Identifier: MIT */
#include "touch/threads/let_go.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "process/blocked_call.h"
#include "process/thread.h"
#include "host/watchdog.h"
#include "process/proc_status.h"
#include "touch/threads/reap.h"
#include "touch/threads/tracer.h"

#define FIRST_PAUSE_NS 50000
#define FINISH_NS 2000000000ull /* a thread among many that run waits long for its turn */
#define FINISH_PAUSE_NS 50000u  /* doubled each time up to … */
#define FINISH_PAUSE_MAX_NS 5000000u
#define ON_ITS_WAY_NS 100000 /* on a processor; to take signals is the first thing that a thread does there */

struct member {
	struct tracee t;
	bool passed;    /* has_passed() */
	int64_t ran_ns; /* before the first look at it; -1: there was none */
};

/* Of the thread that traces them. */
static _Thread_local struct member *list;
static _Thread_local size_t count;

static bool add(const struct member *m)
{
	if (!grow_list(list, count))
		return false;
	list[count++] = *m;
	return true;
}

static struct member take(size_t i)
{
	struct member m = list[i];

	list[i] = list[--count];
	return m;
}

/* While the process is stopped by job control only a detach leaves it so. A filter is suspended as long as it is
 * traced. */
static bool may_go_on_traced(const struct tracee *t)
{
	return tracer_runs() && t->pid && t->tid != t->pid && !t->filtered && !t->group_stopped && !t->detached_at_once;
}

/* Adds it to the list, if it has not ended. */
static void resume(struct member *m)
{
	m->passed = false;
	if (tracee_continue(&m->t, ERR_IGNORED) < 0)
		return;
	m->t.before = (struct blocked_call){ .number = -1 };
	m->ran_ns = -1; /* the others still stand */
	add(m);         /* without memory it goes on, too */
}

/* None waits that any thread may take which does not block it. */
static bool has_taken_all(const char *status)
{
	return !((uint64_t)proc_status_number(status, "ShdPnd", 16, 0) &
	         ~(uint64_t)proc_status_number(status, "SigBlk", 16, 0));
}

/*
 * Has it taken what signals it was to take when it left its stop, with ran_ns on a processor until then? It sleeps, or
 * had run for longer than that takes when it was not stopped again. Who was asked and is in uninterruptible sleep may
 * not come to a stop for long: the request ends with the tracer.
 */
static bool has_passed(const struct tracee *t, int64_t ran_ns, bool all_signals)
{
	const int64_t now_ns = thread_ran_ns(t->pid, t->tid);
	char status[STATUS_BYTES];
	const char *state;

	if (proc_status_read(status, t->pid, t->tid) < 0 || !(state = proc_status_field(status, "State")))
		return true;
	if (strchr("DTZX", *state))
		return true;
	if (t->asked || (all_signals && !has_taken_all(status)))
		return false;
	return *state == 'S' || (*state == 'R' && (!ran_ns || now_ns - ran_ns > ON_ITS_WAY_NS));
}

bool let_go(struct tracee *t)
{
	struct member m = { .t = *t };

	if (!may_go_on_traced(t) || !grow_list(list, count))
		return false;
	resume(&m);
	return true;
}

void let_go_first(struct tracee *t, uint64_t deadline_ns)
{
	const int64_t ran_ns = thread_ran_ns(t->pid, t->tid);

	tracee_detach(t);
	while (!has_passed(t, ran_ns, true) && clock_monotonic_ns() < deadline_ns)
		clock_pause(FIRST_PAUSE_NS);
}

void let_go_running(struct tracee *t)
{
	const struct member m = { .t = *t, .passed = !t->asked };

	if (t->seized)
		add(&m); /* without memory it is resumed by the kernel when memattach ends */
	t->seized = false;
}

/* True: it was stopped, or has ended, and is not in the list. */
static bool look_at(struct member *m)
{
	enum tracee_stop stop;

	int rc = tracee_poll(&m->t, &stop, ERR_IGNORED);
	if (rc > 0 && may_go_on_traced(&m->t))
		resume(m);
	else if (rc > 0)
		tracee_detach(&m->t);
	return rc != 0;
}

int let_go_take_back(struct tracee *t, pid_t tid, bool filtered, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i].t.tid != tid)
			continue;
		if (list[i].t.filtered != filtered)
			return err_set(e, EBUSY, "thread %d has not stopped since it was asked to", tid);
		uint64_t *longest = t->longest_ns;
		*t = take(i).t;
		t->longest_ns = longest;
		return 1;
	}
	return 0;
}

bool let_go_look(void)
{
	bool found = false;

	reap_ended();
	for (size_t i = count; i-- > 0;) {
		if (i >= count) /* a signal was handed back to one that was among them */
			continue;
		struct member m = take(i);
		if (look_at(&m))
			found = true;
		else
			add(&m);
	}
	return found;
}

void let_go_look_at(pid_t tid)
{
	struct member m = { .t = { .tid = tid, .seized = true } };

	for (size_t i = 0; i < count; i++)
		if (list[i].t.tid == tid) {
			m = take(i);
			break;
		}
	if (!look_at(&m) && m.t.pid)
		add(&m);
}

static void pause_for_stop(uint64_t ns)
{
	const struct timespec time = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (tracer_runs())
		sigtimedwait(&child, NULL, &time);
	else
		nanosleep(&time, NULL);
}

void let_go_pause(uint64_t ns)
{
	const uint64_t end_ns = clock_monotonic_ns() + ns;

	for (uint64_t now_ns; (now_ns = clock_monotonic_ns()) < end_ns; let_go_look())
		pause_for_stop(end_ns - now_ns);
}

static bool all_passed(void)
{
	bool all = true;

	for (size_t i = 0; i < count; i++) {
		struct member *m = &list[i];
		if (m->ran_ns < 0)
			m->ran_ns = thread_ran_ns(m->t.pid, m->t.tid);
		m->passed = m->passed || has_passed(&m->t, m->ran_ns, false);
		all &= m->passed;
	}
	return all;
}

void let_go_finish(void)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + FINISH_NS;
	uint64_t pause_ns = FINISH_PAUSE_NS;

	if (count)
		tracee_go_first(true); /* to the end of this thread */
	while (count && (let_go_look() || !all_passed()) && clock_monotonic_ns() < deadline_ns) {
		pause_for_stop(pause_ns);
		pause_ns = pause_ns * 2 < FINISH_PAUSE_MAX_NS ? pause_ns * 2 : FINISH_PAUSE_MAX_NS;
	}
	watchdog_hold(false);
	while (count)
		reap_remove(take(0).t.tid);
	free(list);
	list = NULL;
}
