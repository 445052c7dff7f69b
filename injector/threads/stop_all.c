/* SPDX-License-Identifier: MIT */
#include "stop_all.h"

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

/* Asks those that are new. */
static int ask(struct stop_all *s, const struct target *target, const pid_t *tids, size_t count, struct err *e)
{
	size_t known = s->count;

	for (size_t i = 0; i < count; i++) {
		struct tracee *t;
		/* The list of threads is in order of their age: nearly all are where they were. */
		if ((i < known && s->list[i].tid == tids[i]) || (known && knows(s, tids[i])))
			continue;
		if (!grow_list(s->list, s->count))
			return err_set(e, ENOMEM, "out of memory");
		t = &s->list[s->count];
		*t = (struct tracee){ 0 };
		int rc = tracee_seize(t, target->pid, tids[i], false, e);
		if (rc == 0) {
			s->count++;
			rc = tracee_ask(t, e);
		}
		if (rc < 0 && rc != -ESRCH)
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
		rc = ask(s, target, tids, count, e);
	*fresh = s->count - before;
	if (rc == 0)
		rc = await_from(s, before, s->since_ns + STOP_ALL_NS + s->count * STOP_ALL_THREAD_NS, e);
	return rc;
}

int stop_all(struct stop_all *s, const struct target *target, struct err *e)
{
	size_t fresh;
	int rc;

	*s = (struct stop_all){ .since_ns = monotonic_ns() };
	tracee_go_first(true);
	do
		rc = stop_new(s, target, &fresh, e);
	while (rc == 0 && fresh);
	if (rc == 0 && s->count == 0)
		rc = err_set(e, ESRCH, "process %d has ended", target->pid);
	if (rc == -ETIMEDOUT)
		rc = -EAGAIN;
	if (rc < 0)
		stop_all_end(s, NULL);
	return rc;
}

void stop_all_end(struct stop_all *s, uint64_t *longest_ns)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->list[i].stopped)
			tracee_detach(&s->list[i]);
		else
			tracee_give_up(&s->list[i]);
	}
	uint64_t held = monotonic_ns() - s->since_ns;
	tracee_go_first(false);
	reap_ended();
	if (longest_ns && held > *longest_ns)
		*longest_ns = held;
	free(s->list);
	*s = (struct stop_all){ 0 };
}
