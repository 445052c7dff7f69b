/* SPDX-License-Identifier: MIT */
/*
 * Attach: everything is prepared while the target runs; then one thread is borrowed, once, for
 *
 *   descriptors → load → CONTROL_START → detours → CONTROL_PATCH
 *
 * each a list of remote calls of its own (remote.h), so that a death of memattach in between leaves: nothing; a loaded
 * but idle payload; or a recording session whose lease runs out. Each of these is found and finished by `memattach
 * --detach`. The program itself is changed afterwards, while all threads stand still (patches.h).
 */
#include "run/steps/attach.h"

#include "base/cleanup.h"
#include "run/steps/follow.h"
#include "run/steps/inspect.h"
#include "session/loader_choice.h"
#include "touch/patches/loader_moment.h"
#include "touch/patches/loan.h"
#include "touch/patches/recording.h"
#include "touch/patches/patches.h"
#include "touch/remote/payload_symbols.h"
#include "run/steps/plan.h"
#include "touch/python/python_functions.h"
#include "touch/python/python_hooks.h"
#include "session/record.h"
#include "touch/patches/still_moment.h"

/* After all, dlopen may not be called. */
static int map_instead(struct session *s, const char *why, struct err *e)
{
	if (!libc_loads_payload(&s->view.libc))
		return err_set(e, ENOTSUP, "it is so already");
	loader_choice_set_aside(s, why);
	int rc = plan_session(s, e);
	rc = rc ?: python_functions_again(s, e);
	if (rc == 0)
		python_hooks_relieve(s);
	rc = rc ?: inspect_choose(s, e);
	return rc ?: record_hooks(s, e);
}

static uint64_t trampoline_bytes(const struct session *s)
{
	const struct got_plan *p = &s->view.plan;

	return (p->trampoline_count + s->hooks.count) * sizeof(struct control_trampoline);
}

struct loading {
	int payload_fd;
	bool begun;
	const char *why; /* the loader may not be called after all; NULL: it may, or is not to be */
};

static bool may_map(const struct session *s)
{
	return libc_loads_payload(&s->view.libc) && s->options.loader == LOADER_AUTO;
}

static int load(struct loan *l, void *context, struct err *e)
{
	struct loading *x = context;
	struct session *s = l->s;

	x->begun = true;
	/* The only thread is stopped: it makes no other from now on. */
	if (may_map(s) && (x->why = loader_choice_threads_against(s)))
		return 0;
	s->touched = true;
	/* There may have been a session that was taken over. */
	s->outcome.entries = s->outcome.python = (struct word_counts){ 0 };
	dump_writer_set_state(&s->recording.dump, DUMP_STATE_RUNNING, 0);
	if (!libc_loads_payload(&s->view.libc))
		loan_hold_others(l);
	return recording_load(l, x->payload_fd, e);
}

static int borrow_to_load(struct session *s, struct loading *x, struct err *e)
{
	struct borrower borrower;

	session_borrower(s, &borrower, trampoline_bytes(s), &s->outcome.attach_longest_ns);
	return loan_run(s, &borrower, load, x, e);
}

static int load_once(struct session *s, int payload_fd, struct err *e)
{
	struct loading x = { .payload_fd = payload_fd };
	struct err first, second;

	int rc = borrow_to_load(s, &x, &first);
	if (rc == -ETIMEDOUT && !x.begun && may_map(s))
		x.why = "no thread came to a point where dlopen may be called";
	if (!x.why || (rc < 0 && rc != -ETIMEDOUT)) {
		*e = first;
		return rc;
	}
	if (map_instead(s, x.why, &second) < 0)
		return err_set(e, ETIMEDOUT, "%s; nor can the payload be mapped without the loader: %s",
		               rc < 0 ? first.text : x.why, second.text);
	return borrow_to_load(s, &x, e);
}

int attach_session(struct session *s, struct err *e)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + s->options.deadline_ns;
	AUTO_CLOSE int payload_fd = -1;

	int rc = payload_symbols_memfd(&payload_fd, e);
	if (rc < 0)
		return rc;
	changes_forget(&s->changes);
	rc = still_moment_foresee(s, clock_monotonic_ns() + s->options.deadline_ns, e);
	if (rc == 0)
		do
			rc = load_once(s, payload_fd, e);
		while (rc == -EDEADLK && loader_moment_pause(deadline_ns));
	rc = rc ?: target_read(&s->memory, s->payload.session, &s->payload.block, sizeof s->payload.block, e);
	return rc < 0 ? rc : patches_write(s, clock_monotonic_ns() + s->options.deadline_ns, e);
}

static int set_trampolines(struct loan *l, void *unused, struct err *e)
{
	(void)unused;
	return recording_set_trampolines(l, e);
}

static int set_more_trampolines(struct session *s, struct err *e)
{
	struct borrower borrower;

	session_borrower(s, &borrower, trampoline_bytes(s), &s->outcome.attach_longest_ns);
	int rc = loan_run(s, &borrower, set_trampolines, NULL, e);
	if (rc == 0)
		s->payload.block.trampoline_count = (uint32_t)s->view.plan.trampoline_count;
	return rc;
}

int attach_patch_more(struct session *s, struct err *e)
{
	int rc = 0;

	if (s->view.plan.trampoline_count > s->payload.block.trampoline_count)
		rc = set_more_trampolines(s, e);
	return rc == 0 ? patches_write_words(s, clock_monotonic_ns() + s->options.deadline_ns, e) : rc;
}
