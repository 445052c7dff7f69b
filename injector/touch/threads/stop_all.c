/* SPDX-License-Identifier: MIT */
#include "touch/threads/stop_all.h"

#include <signal.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "process/clone_vm.h"
#include "base/grow.h"
#include "touch/threads/let_go.h"
#include "touch/threads/reap.h"

#define AWAIT_NS (10 * SLEEPER_AWAIT_NS) /* for all that run, before the first is stopped */
#define HELD_NS 2000000ull               /* the same beside one that is held, and waits for all of this */
#define WAKING_NS 400000000ull           /* for a moment in which none of the sleepers wakes */

static bool knows(const struct stop_all *s, pid_t tid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].tid == tid)
			return true;
	return false;
}

static bool is_sleeper(const struct stop_all *s, pid_t tid)
{
	for (size_t i = 0; i < s->sleeper_count; i++)
		if (s->sleepers[i].tid == tid)
			return true;
	return false;
}

/* 1: it sleeps in a call that a stop would harm, and is among the sleepers now; 0: it may be stopped. */
static int leave_asleep(struct stop_all *s, pid_t pid, pid_t tid, uint64_t deadline_ns, struct err *e)
{
	struct sleeper sleeper;

	if (s->sleepers_too || sleeper_await(&sleeper, pid, tid, deadline_ns) != SLEEPER_FOUND)
		return 0;
	if (!grow_list(s->sleepers, s->sleeper_count))
		return err_set(e, ENOMEM, "out of memory");
	s->sleepers[s->sleeper_count++] = sleeper;
	return 1;
}

/* *fresh: how many have woken since, and sleep again or are to be stopped. Beside one that is held none is looked
 * after.
 */
static int look_after_sleepers(struct stop_all *s, size_t *fresh, struct err *e)
{
	if (s->spared)
		return 0;
	for (size_t i = s->sleeper_count; i-- > 0;) {
		const struct sleeper before = s->sleepers[i];
		if (sleeper_sleeps(&before))
			continue;
		++*fresh;
		s->sleepers[i] = s->sleepers[--s->sleeper_count];
		int rc = leave_asleep(s, before.pid, before.tid, clock_monotonic_ns() + SLEEPER_AWAIT_NS, e);
		if (rc < 0)
			return rc;
	}
	if (*fresh && s->sleeper_count && clock_monotonic_ns() > s->began_ns + WAKING_NS)
		return err_set(e, EAGAIN, "thread %d wakes again and again", s->sleepers[0].tid);
	return 0;
}

int stop_all_asleep(const struct stop_all *s, struct err *e)
{
	for (size_t i = 0; i < s->sleeper_count; i++)
		if (!sleeper_sleeps(&s->sleepers[i]))
			return err_set(e, EAGAIN, "thread %d has woken", s->sleepers[i].tid);
	return 0;
}

/* The parent of a vfork child, which sleeps until that has left the memory, as all sharers are stopped. */
static bool is_excused(const struct stop_all_sharers *sharers, pid_t pid, pid_t tid, size_t *excused)
{
	struct thread_info thread = { .tid = tid };

	if (*excused >= sharers->count)
		return false;
	thread_look(pid, &thread);
	*excused += clone_vm_may_wait(&thread);
	return clone_vm_may_wait(&thread);
}

/* Seizes those of a process that are new. */
static int seize(struct stop_all *s, pid_t pid, const struct stop_all_sharers *sharers, const pid_t *tids, size_t count,
                 struct err *e)
{
	const size_t known = s->count;
	size_t excused = 0;

	for (size_t i = count; i-- > 0;) {
		/* The list of threads is in order of their age: nearly all are where they were. */
		const size_t usual = count - 1 - i;
		if (tids[i] == s->spared || (tids[i] == s->first && !s->first_too) ||
		    (usual < known && s->list[usual].tid == tids[i]) || (known && knows(s, tids[i])))
			continue;
		if (is_excused(sharers, pid, tids[i], &excused)) {
			s->excused = tids[i];
			continue;
		}
		if (is_sleeper(s, tids[i]))
			continue;
		int asleep = leave_asleep(s, pid, tids[i], s->began_ns + (s->spared ? HELD_NS : AWAIT_NS), e);
		if (asleep < 0)
			return asleep;
		if (asleep)
			continue;
		if (!grow_list(s->list, s->count))
			return err_set(e, ENOMEM, "out of memory");
		s->list[s->count] = (struct tracee){ 0 };
		int rc = tracee_seize(&s->list[s->count], pid, tids[i], false, e);
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
		s->since_ns = clock_monotonic_ns();
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
		rc = rc ?: tracee_ask(t, e);
		rc = rc ?: tracee_wait(t, deadline_ns, &stop, e);
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

static int seize_process(struct stop_all *s, const struct target *target, const struct stop_all_sharers *sharers,
                         struct err *e)
{
	AUTO_FREE pid_t *tids = NULL;
	size_t count = 0;

	int rc = target_tids(target, &tids, &count, e);
	return rc == 0 ? seize(s, target->pid, sharers, tids, count, e) : rc;
}

/* *fresh: threads that were not on the list before. */
static int stop_new(struct stop_all *s, const struct target *target, const struct stop_all_sharers *sharers,
                    size_t *fresh, struct err *e)
{
	const struct stop_all_sharers none = { 0 };
	size_t before = s->count;
	int rc = 0;

	for (size_t i = 0; i < sharers->count && rc == 0; i++) {
		const struct target sharer = { .pid = sharers->list[i] };
		rc = seize_process(s, &sharer, &none, e);
		if (rc == -ESRCH) /* it has left */
			rc = 0;
	}
	rc = rc ?: seize_process(s, target, sharers, e);
	*fresh = s->count - before;
	rc = rc ?: ask_from(s, before, e);
	rc = rc ?: await_from(s, before, s->since_ns + STOP_ALL_NS + s->count * STOP_ALL_THREAD_NS, e);
	return rc == 0 ? look_after_sleepers(s, fresh, e) : rc;
}

static int stop(struct stop_all *s, const struct target *target, const struct stop_all_sharers *sharers,
                uint64_t *longest_ns, struct err *e)
{
	sigset_t child, mask;
	size_t fresh;
	int rc;

	s->first = target->pid;
	s->began_ns = clock_monotonic_ns();
	/* Of each stop SIGCHLD would tell the reaper (reap.h), which then looks at all that are traced. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &mask);
	tracee_go_first(true);
	do {
		rc = stop_new(s, target, sharers, &fresh, e);
		if (rc == 0 && !fresh && !s->first_too)
			fresh = s->first_too = true;
	} while (rc == 0 && fresh);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (rc == 0 && s->count + s->sleeper_count == 0 && !s->spared)
		rc = target_alive(target) ? err_set(e, EAGAIN, "its threads end before they stop")
		                          : err_set(e, ESRCH, "process %d has ended", target->pid);
	if (rc == -ETIMEDOUT)
		rc = -EAGAIN;
	if (rc < 0)
		stop_all_end(s, longest_ns);
	return rc;
}

int stop_all(struct stop_all *s, const struct target *target, const struct stop_all_sharers *sharers,
             uint64_t *longest_ns, struct err *e)
{
	*s = (struct stop_all){ 0 };
	return stop(s, target, sharers, longest_ns, e);
}

int stop_all_others(struct stop_all *s, const struct target *target, pid_t spared, bool sleepers_too,
                    uint64_t *longest_ns, struct err *e)
{
	const struct stop_all_sharers none = { 0 };

	*s = (struct stop_all){ .spared = spared, .sleepers_too = sleepers_too };
	return stop(s, target, &none, longest_ns, e);
}

/* Those that have not come to their stop are asked once more: who is given up is resumed only later. */
static void end_stop(struct tracee *t)
{
	enum tracee_stop stop;

	if (!t->stopped && t->seized && tracee_poll(t, &stop, ERR_IGNORED) < 0)
		return;
	if (t->stopped)
		tracee_detach(t);
	else
		let_go_running(t);
}

static void resume_first(struct stop_all *s)
{
	for (size_t i = 0; i < s->count && s->count > 1; i++)
		if (s->list[i].tid == s->first && s->list[i].stopped) {
			let_go_first(&s->list[i], clock_monotonic_ns() + LET_GO_FIRST_NS);
			drop(s, i);
		}
}

void stop_all_end(struct stop_all *s, uint64_t *longest_ns)
{
	resume_first(s);
	for (size_t i = 0; i < s->count; i++)
		end_stop(&s->list[i]);
	uint64_t held = s->since_ns ? clock_monotonic_ns() - s->since_ns : 0;
	tracee_go_first(false);
	reap_ended();
	if (held > *longest_ns)
		*longest_ns = held;
	free(s->list);
	free(s->sleepers);
	*s = (struct stop_all){ 0 };
}
