/* SPDX-License-Identifier: MIT */
#include "touch/patches/loader_moment.h"

#include <errno.h>

#include "session/loader_choice.h"
#include "elf/loader_locks.h"
#include "host/watchdog.h"

#define PAUSE_NS 3000000
/*
 * Then the others go on. A dlopen of the payload takes a quarter of a millisecond, but the thread has to get its turn
 * on a busy machine; and one that goes on may take the lock of the loader and wait for this thread, for ever.
 */
#define LATE_NS 1000000000ull

static uint64_t *longest(const struct loader_moment *m)
{
	struct session *s = m->loan->s;

	return s->payload.base ? &s->outcome.detach_longest_ns : &s->outcome.attach_longest_ns;
}

/* While the thread is still in its call. */
static void let_others_go(void *context)
{
	struct loader_moment *m = context;

	for (size_t i = 0; i < m->others.count; i++)
		m->others.list[i].detached_at_once = true;
	stop_all_end(&m->others, longest(m));
}

static int check_others(struct loader_moment *m, struct err *e)
{
	const struct session *s = m->loan->s;
	const uint64_t locks = loader_locks_find(&s->view.modules, &s->memory);

	if (locks && !loader_locks_are_free(locks, &s->memory))
		return err_set(e, EDEADLK, "a thread holds the lock of the loader");
	for (size_t i = 0; i < m->others.count; i++) {
		struct err why;
		if (safe_point_check(&s->view.points, &m->others.list[i], &why) < 0)
			return err_set(e, EDEADLK, "%.400s while the loader is to be called", why.text);
	}
	return 0;
}

int loader_moment_begin(struct loader_moment *m, struct loan *l, struct err *e)
{
	*m = (struct loader_moment){ .loan = l };
	if (!loader_choice_has_more_threads(l->s))
		return check_others(m, e);
	int rc = stop_all_others(&m->others, &l->s->target, l->thread->tid, true, longest(m), e);
	if (rc == -EAGAIN)
		rc = e->code = -EDEADLK;
	rc = rc ?: check_others(m, e);
	l->remote->late = let_others_go;
	l->remote->late_context = m;
	l->remote->late_ns = clock_monotonic_ns() + LATE_NS;
	return rc;
}

void loader_moment_end(struct loader_moment *m)
{
	m->loan->remote->late = NULL;
	m->loan->others = m->others;
}

bool loader_moment_pause(uint64_t deadline_ns)
{
	clock_pause(PAUSE_NS);
	return clock_monotonic_ns() < deadline_ns && !watchdog_asked_twice();
}
