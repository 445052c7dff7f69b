/* SPDX-License-Identifier: MIT */
#include "stop_all.h"

#include <signal.h>
#include <stdlib.h>

#include "cleanup.h"
#include "grow.h"
#include "reap.h"

static bool knows(const struct stop_all *s, pid_t tid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].tid == tid)
			return true;
	return false;
}

/* Seizes those that are new. */
static int seize(struct stop_all *s, const struct target *target, const pid_t *tids, size_t count, struct err *e)
{
	size_t known = s->count;

	for (size_t i = 0; i < count; i++) {
		/* The list of threads is in order of their age: nearly all are where they were. */
		if ((i < known && s->list[i].tid == tids[i]) || (known && knows(s, tids[i])))
			continue;
		if (!grow_list(s->list, s->count))
			return err_set(e, ENOMEM, "out of memory");
		s->list[s->count] = (struct tracee){ 0 };
		int rc = tracee_seize(&s->list[s->count], target->pid, tids[i], false, e);
		if (rc == 0)
			s->count++;
		else if (rc != -ESRCH)
			return rc;
	}
	return 0;
}

static int ask_from(struct stop_all *s, size_t first, struct err *e)
{
	if (!s->since_ns)
		s->since_ns = monotonic_ns();
	for (size_t i = first; i < s->count; i++) {
		int rc = tracee_ask(&s->list[i], e);
		if (rc < 0 && rc != -ESRCH) /* it has ended: waiting will tell */
			return rc;
	}
	return 0;
}

/* It may meet stops of other kinds first, which use the request up. */
static int await(struct tracee *t, uint64_t deadline_ns, struct err *e)
{
	enum tracee_stop stop;
	int rc = tracee_wait(t, deadline_ns, &stop, e);

	while (rc == 0 && stop != TRACEE_STOP_EVENT && stop != TRACEE_STOP_GROUP) {
		rc = tracee_continue(t, e);
		if (rc == 0)
			rc = tracee_ask(t, e);
		if (rc == 0)
			rc = tracee_wait(t, deadline_ns, &stop, e);
	}
	return rc;
}

static void drop(struct stop_all *s, size_t i)
{
	s->list[i] = s->list[--s->count];
}

static int await_from(struct stop_all *s, size_t first, uint64_t deadline_ns, struct err *e)
{
	for (size_t i = first; i < s->count;) {
		int rc = await(&s->list[i], deadline_ns, e);
		if (rc == -ESRCH)
			drop(s, i);
		else if (rc < 0)
			return rc;
		else
			i++;
	}
	return 0;
}

/* *fresh: threads that were not on the list before. */
static int stop_new(struct stop_all *s, const struct target *target, size_t *fresh, struct err *e)
{
	AUTO_FREE pid_t *tids = NULL;
	size_t count = 0, before = s->count;

	int rc = target_tids(target, &tids, &count, e);
	if (rc == 0)
		rc = seize(s, target, tids, count, e);
	*fresh = s->count - before;
	if (rc == 0)
		rc = ask_from(s, before, e);
	if (rc == 0)
		rc = await_from(s, before, s->since_ns + STOP_ALL_NS + s->count * STOP_ALL_THREAD_NS, e);
	return rc;
}

int stop_all(struct stop_all *s, const struct target *target, uint64_t *longest_ns, struct err *e)
{
	sigset_t child, mask;
	size_t fresh;
	int rc;

	*s = (struct stop_all){ 0 };
	/* Of each stop SIGCHLD would tell the reaper (reap.h), which then looks at all that are traced. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &mask);
	tracee_go_first(true);
	do
		rc = stop_new(s, target, &fresh, e);
	while (rc == 0 && fresh);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (rc == 0 && s->count == 0)
		rc = err_set(e, ESRCH, "process %d has ended", target->pid);
	if (rc == -ETIMEDOUT)
		rc = -EAGAIN;
	if (rc < 0)
		stop_all_end(s, longest_ns);
	return rc;
}

/* Those that have not come to their stop are asked once more: who is given up is resumed only later. */
static void let_go(struct tracee *t)
{
	enum tracee_stop stop;
	struct err ignored;

	if (!t->stopped && t->seized && tracee_poll(t, &stop, &ignored) < 0)
		return;
	if (t->stopped)
		tracee_detach(t);
	else
		tracee_give_up(t);
}

void stop_all_end(struct stop_all *s, uint64_t *longest_ns)
{
	for (size_t i = 0; i < s->count; i++)
		let_go(&s->list[i]);
	uint64_t held = s->since_ns ? monotonic_ns() - s->since_ns : 0;
	tracee_go_first(false);
	reap_ended();
	if (held > *longest_ns)
		*longest_ns = held;
	free(s->list);
	*s = (struct stop_all){ 0 };
}
