/* SPDX-License-Identifier: MIT */
#include "run/clone_collect.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/now.h"
#include "host/clocks.h"
#include "process/clones/our_clone.h"
#include "run/steps/inspect.h"
#include "run/steps/old_stub.h"
#include "session/session_lock.h"
#include "touch/patches/loan.h"
#include "touch/remote/memory_clone.h"

#define RETRY_NS 20000000u
#define YOUNG_NS 10000000000ull
#define EXPECTED_NS 5000000000ull /* for a new one to get a processor */
#define EXPECTED_PAUSE_NS 1000000u

static int collect_by(struct loan *l, void *context, struct err *e)
{
	const struct our_clones *z = context;
	int rc = 0;

	for (size_t i = 0; i < z->count && rc == 0; i++)
		rc = memory_clone_collect(l->remote, z->list[i].inner, l->deadline_ns, e);
	return rc;
}

/* What is known of its modules may be old. */
static int borrow_for(struct session *s, struct our_clones *z, struct err *e)
{
	struct borrower borrower;
	uint64_t longest_ns = 0;

	s->view.cave = (struct stub_place){ 0 };
	int rc = inspect_session_again(s, e);
	rc = rc ?: inspect_choose(s, e);
	if (rc < 0)
		return rc;
	s->view.points.takes_no_locks = true;
	session_patient_borrower(s, &borrower, &longest_ns);
	return loan_run(s, &borrower, collect_by, z, e);
}

/* Takes the list over. */
static int collect(struct session *s, pid_t known, struct our_clones *z, unsigned *collected, struct err *e)
{
	int rc = 0;

	*collected = 0;
	if (z->count) {
		our_clones_end(&s->target, known);
		rc = borrow_for(s, z, e);
		if (rc == 0)
			*collected = (unsigned)z->count;
	}
	free(z->list);
	return rc;
}

int clone_collect(struct session *s, pid_t known, unsigned *collected, struct err *e)
{
	struct our_clone_wish wish = OUR_CLONE_NAMED;
	struct our_clones z = { 0 };

	wish.known = known;
	int rc = our_clones_find(&s->target, wish, &z, e);
	return rc < 0 ? rc : collect(s, known, &z, collected, e);
}

/* In ticks since boot, as the kernel notes when a process began. */
static uint64_t ticks_ago(uint64_t ns)
{
	const uint64_t boot_ns = now_ns(CLOCK_BOOTTIME), then_ns = boot_ns > ns ? boot_ns - ns : 0;

	return then_ns / (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Who was left in the stub has come out of it (old_stub.h): what it was to make is there, but may have no name yet. */
static int collect_young(struct session *s, bool may_be, unsigned *collected, struct err *e)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + EXPECTED_NS;
	const struct our_clone_wish wish = { .since_ticks = may_be ? ticks_ago(YOUNG_NS) : UINT64_MAX };
	struct our_clones z = { 0 };

	for (;;) {
		int rc = our_clones_find(&s->target, wish, &z, e);
		if (rc < 0)
			return rc;
		if (!z.expected || clock_monotonic_ns() >= deadline_ns)
			return collect(s, 0, &z, collected, e);
		free(z.list);
		clock_pause(EXPECTED_PAUSE_NS);
	}
}

/* Where no stub is left the program's own silent children, which a LeakSanitizer has, keep nobody waiting. */
int clone_collect_of_dead(struct session *s, unsigned *collected, struct err *e)
{
	struct stub_place cave;

	return collect_young(s, old_stub_cave(s, &cave), collected, e);
}

static int collect_once(const struct session_options *o, struct err *e)
{
	unsigned collected;
	struct session s;
	pid_t holder;

	session_init(&s, o);
	s.detaching = s.options.quiet = true;
	int rc = inspect_open(&s, e);
	rc = rc ?: session_lock_take(&s.target, &holder, e);
	rc = rc ?: inspect_session(&s, e);
	rc = rc ?: old_stub_settle(&s, e);
	rc = rc ?: collect_young(&s, true, &collected, e);
	if (rc == 0 && old_stub_cave(&s, &s.view.cave)) {
		rc = inspect_choose(&s, e);
		rc = rc ?: old_stub_erase_caves(&s, e);
	}
	session_done(&s);
	return rc;
}

int clone_collect_alone(const struct session_options *o, uint64_t patience_ns, struct err *e)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + patience_ns;
	int rc;

	while ((rc = collect_once(o, e)) < 0 && rc != -ESRCH && clock_monotonic_ns() < deadline_ns)
		clock_pause(RETRY_NS);
	return rc == -ESRCH ? 0 : rc; /* its children are somebody else's then */
}
