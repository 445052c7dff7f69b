/* SPDX-License-Identifier: MIT */
#include "touch/threads/visit_threads.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "touch/threads/let_go.h"
#include "touch/threads/reap.h"
#include "process/target.h"
#include "host/watchdog.h"
#include "base/order.h"

#define FEW 8
#define MOMENT_NS 1000000ull
#define LOOK_NS                                                                                                        \
	100000000ull /* after threads that have ended: a first thread that ends before the others tells no tracer */

struct member {
	struct tracee t;
	uint64_t asked_ns; /* 0: not yet, or done */
};

struct run {
	const struct thread_visits *c;
	struct member *members; /* sorted by thread */
	size_t next;            /* not yet asked from here on */
	size_t asked;           /* that have not stopped */
	size_t fresh;           /* asked, and in the last moment */
	bool urgent;
	/* When we last looked in vain, or, since we go first and hear of it at once, were told of a stop: those found
	 * then were not stopped before. */
	uint64_t noticed_ns;
};

ORDER_BY(by_tid, struct member, t.tid);

static struct member *find(const struct run *r, pid_t tid)
{
	const struct member key = { .t.tid = tid };
	struct member *m = bsearch(&key, r->members, r->c->count, sizeof *r->members, by_tid);

	return m && m->asked_ns ? m : NULL;
}

static void done(struct run *r, struct member *m, int rc, const struct err *e)
{
	r->asked--;
	if (r->fresh)
		r->fresh--;
	r->c->visit(r->c->context, m->t.tid, rc == 0 ? &m->t : NULL, rc, e);
	if (rc == 0) {
		tracee_detach(&m->t);
		uint64_t since = m->asked_ns > r->noticed_ns ? m->asked_ns : r->noticed_ns;
		uint64_t held = clock_monotonic_ns() - since;
		if (r->c->longest_ns && held > *r->c->longest_ns)
			*r->c->longest_ns = held;
	}
	m->asked_ns = 0;
}

/* What ptrace and waitid say of a thread that has ended they also say of one that is not traced: only the first may be
 * taken for done with. */
static void failed(struct run *r, struct member *m, int rc, struct err *e)
{
	if (rc == -ESRCH && !thread_has_ended(r->c->pid, m->t.tid))
		rc = err_set(e, EAGAIN, "thread %d is not traced", m->t.tid);
	done(r, m, rc, e);
}

static void ask_next(struct run *r)
{
	struct member *m = &r->members[r->next++];
	struct err e;

	m->asked_ns = clock_monotonic_ns();
	r->asked++;
	r->fresh++;
	int rc = tracee_seize(&m->t, r->c->pid, m->t.tid, false, &e);
	rc = rc ?: tracee_ask(&m->t, &e);
	if (rc < 0)
		failed(r, m, rc, &e);
}

static void came(struct run *r, struct member *m)
{
	enum tracee_stop stop;
	struct err e;

	int rc = tracee_poll(&m->t, &stop, &e);
	if (rc == 0)
		return; /* woken again by something else */
	rc = rc < 0 ? rc : 0;
	if (rc == 0 && stop != TRACEE_STOP_EVENT && stop != TRACEE_STOP_GROUP) {
		/* It has used up the interrupt: passed on, and asked again. */
		rc = tracee_continue(&m->t, &e);
		rc = rc ?: tracee_ask(&m->t, &e);
		if (rc == 0)
			return;
	}
	if (rc < 0)
		failed(r, m, rc, &e);
	else
		done(r, m, 0, &e);
}

/*
 * All that are in a stop or have ended. A tracee is waited for whatever the options say; with __WCLONE nothing is
 * heard of the child that writes the dump, whose end somebody else asks for: a number that is reaped here would be
 * signalled there when another process has it.
 */
static void gather(struct run *r)
{
	/* A program that stops and continues its threads does not put the deadline off. */
	do {
		siginfo_t info = { 0 };
		if (waitid(P_ALL, 0, &info, WSTOPPED | WEXITED | WNOWAIT | WNOHANG | __WCLONE) < 0 || info.si_pid == 0)
			break;
		struct member *m = find(r, info.si_pid);
		if (m)
			came(r, m);
		else
			let_go_look_at(info.si_pid);
		if (m && r->next < r->c->count && r->fresh < FEW)
			ask_next(r);
	} while (clock_monotonic_ns() < r->c->deadline_ns);
	r->noticed_ns = clock_monotonic_ns();
}

static void drop(struct run *r, bool all)
{
	struct err e;

	for (; all && r->next < r->c->count; r->next++, r->asked++)
		r->members[r->next].asked_ns = r->noticed_ns;
	for (size_t i = 0; i < r->next; i++) {
		struct member *m = &r->members[i];
		if (!m->asked_ns)
			continue;
		if (thread_has_ended(r->c->pid, m->t.tid))
			done(r, m, err_set(&e, ESRCH, "thread %d has ended", m->t.tid), &e);
		else if (all) {
			let_go_running(&m->t);
			done(r, m, thread_did_not_stop(r->c->pid, m->t.tid, &e), &e);
		}
	}
}

/* Until one of them stops. False: none did for so long. */
static bool pause_for_stop(const sigset_t *child, uint64_t ns)
{
	const struct timespec time = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	return sigtimedwait(child, NULL, &time) == SIGCHLD;
}

static void visit_all(struct run *r, const sigset_t *child)
{
	size_t count = r->c->count;
	unsigned reaped = reap_count();

	r->noticed_ns = clock_monotonic_ns();
	while (r->next < count || r->asked > 0) {
		while (r->next < count && r->fresh < FEW)
			ask_next(r);
		gather(r);
		if (reap_count() != reaped) { /* while another one was seized: gather heard nothing of it */
			reaped = reap_count();
			drop(r, false);
		}
		if (r->noticed_ns >= r->c->deadline_ns || watchdog_asked_twice()) {
			drop(r, true);
			return;
		}
		if (r->asked == 0)
			continue;
		bool stopped = pause_for_stop(child, r->next < count ? MOMENT_NS : LOOK_NS);
		if (r->urgent)
			r->noticed_ns = clock_monotonic_ns();
		if (!stopped)
			r->fresh = 0;
		if (!stopped && r->next == count)
			drop(r, false);
	}
}

int visit_threads(const struct thread_visits *c, struct err *e)
{
	AUTO_FREE struct member *members = calloc(c->count + 1, sizeof *members);
	struct run r = { .c = c, .members = members };
	sigset_t child, before;

	if (!members)
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < c->count; i++)
		members[i].t.tid = c->tids[i];
	qsort(members, c->count, sizeof *members, by_tid);
	/* A stop sends SIGCHLD. Blocked, it stays until it is waited for. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	reap_ended();
	r.urgent = tracee_go_first(true);
	visit_all(&r, &child);
	if (r.urgent)
		r.urgent = !tracee_go_first(false);
	reap_ended();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return 0;
}
