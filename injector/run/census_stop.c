/* SPDX-License-Identifier: MIT */
#include "run/census_stop.h"

#include <stdio.h>
#include <stdlib.h>

#include "census/census_lost.h"
#include "host/clocks.h"
#include "host/watchdog.h"
#include "process/clone_vm.h"
#include "run/census_clone.h"
#include "touch/threads/let_go.h"
#include "touch/threads/tracer.h"

#define MAX_STOP_NS 1000000000ull
#define ATTEMPTS 20u
#define BUSY_ATTEMPTS 3u /* each of them is a whole stop */
#define PAUSE_NS 2000000

struct stopping {
	struct census *census;
	struct stop_words words;
	uint64_t longest_ns; /* that is allowed */
	struct err why;
};

static int while_stopped(struct stopping *s, const struct stop_all *all, struct err *e)
{
	int rc = stop_words_read(&s->words, all, NULL, e);

	return rc == 0 ? census_lost_settle(s->census, &s->words.stop, all->since_ns + s->longest_ns, e) : rc;
}

static int attempt(void *context)
{
	struct stopping *s = context;
	struct err *e = &s->why;
	struct stop_all_sharers sharers = { 0 };
	struct stop_all all;

	int rc = clone_vm_find(s->census->target, &sharers.list, &sharers.count, e);
	rc = rc ?: stop_all(&all, s->census->target, &sharers, &s->census->lost.stopped_ns, e);
	if (rc == 0) {
		rc = while_stopped(s, &all, e);
		stop_all_end(&all, &s->census->lost.stopped_ns);
	}
	free(sharers.list);
	return rc;
}

static int try_moments(struct stopping *s, struct err *e)
{
	unsigned busy = 0;
	int rc = -EAGAIN;

	for (unsigned i = 0; i < ATTEMPTS && (rc == -EAGAIN || (rc == -EBUSY && busy < BUSY_ATTEMPTS)); i++) {
		if (watchdog_check(e) < 0)
			return -EINTR;
		if (i)
			clock_pause(PAUSE_NS);
		let_go_look();
		rc = tracer_run(attempt, s);
		busy += rc == -EBUSY;
	}
	if (rc < 0)
		*e = s->why;
	return rc;
}

/* No moment was had; what else is known may be told. */
static bool is_only_unknown(int rc)
{
	return rc == -EAGAIN || rc == -EBUSY || rc == -ETIME || rc == -ETIMEDOUT || rc == -ENOSYS || rc == -EPERM ||
	       rc == -EACCES || rc == -EMFILE || rc == -ENFILE ||
	       rc == -EFAULT; /* memory that only the process itself may read */
}

/* What the kernel has is read once more meanwhile. */
static bool takes_too_long(struct stopping *s)
{
	const uint64_t expected_ns = stop_words_kernel_ns(&s->words) + census_lost_expected_ns(s->census);

	if (expected_ns <= s->longest_ns)
		return false;
	census_lost_is_unknown(s->census, "it would be stopped for %.0f ms, more than --max-stop",
	                       (double)expected_ns / 1e6);
	return true;
}

/* In a clone, or else frozen; how it was is noted. */
static int look(struct stopping *s, const struct session_options *o, bool *left, struct err *e)
{
	struct census_lost *lost = &s->census->lost;

	int rc = o->freeze ? -ENOTSUP : census_clone(s->census, &s->words, o, s->longest_ns, left, e);
	if (rc != -ENOTSUP)
		return rc;
	if (!o->freeze)
		snprintf(lost->not_cloned, sizeof lost->not_cloned, "%.*s", (int)sizeof lost->not_cloned - 1, e->text);
	return takes_too_long(s) ? 0 : try_moments(s, e);
}

int census_stop(struct census *c, const struct session_options *o, bool *left, struct err *e)
{
	struct stopping s = { .census = c, .longest_ns = o->max_stop_ns ? o->max_stop_ns : MAX_STOP_NS };

	*left = false;
	if (c->lost.why[0])
		return 0;
	int rc = watchdog_start(c->target->pid, e);
	rc = rc ?: stop_words_open(&s.words, c, e);
	if (rc == 0 && !s.words.kernel.io_uring)
		rc = look(&s, o, left, e);
	if (is_only_unknown(rc)) {
		census_lost_is_unknown(c, "%s", e->text);
		rc = 0;
	}
	if (rc == 0 && s.words.kernel.io_uring) /* before, or at the stop */
		census_lost_has_requests(c);
	if (rc == 0 && stop_words_may_lack(&s.words))
		census_lost_is_unknown(c, "it has made epoll descriptors meanwhile, which hold pointers");
	rc = rc ?: census_lost_count(c, e);
	stop_words_close(&s.words);
	return rc;
}
