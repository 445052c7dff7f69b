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
#include "run/steps/inspect.h"
#include "session/loader_choice.h"
#include "touch/patches/loader_moment.h"
#include "touch/patches/loan.h"
#include "touch/patches/recording.h"
#include "touch/patches/patches.h"
#include "touch/remote/payload_symbols.h"
#include "run/steps/plan.h"
#include "touch/python/python_code.h"
#include "touch/python/python_functions.h"
#include "touch/python/python_hooks.h"
#include "session/record.h"
#include "touch/patches/still_moment.h"
#include "touch/threads/tracer.h"

/* After all, dlopen may not be called. */
static int map_instead(struct session *s, const char *why, struct err *e)
{
	if (!libc_loads_payload(&s->view.libc))
		return err_set(e, ENOTSUP, "it is so already");
	session_set_loader_aside(s, why);
	int rc = session_plan(s, e);
	if (rc == 0)
		rc = python_functions_again(s, e);
	if (rc == 0)
		session_relieve_python(s);
	if (rc == 0)
		rc = session_choose(s, e);
	if (rc == 0)
		rc = session_record_hooks(s, e);
	return rc;
}

static uint64_t trampoline_bytes(const struct session *s)
{
	const struct got_plan *p = &s->view.plan;

	return (p->trampoline_count + s->hooks.count) * sizeof(struct control_trampoline);
}

/* A thread is borrowed. If the loader may not be called after all, *why is set, and none is. */
static int begin_once(struct session *s, struct loan *loan, struct borrower *borrower, const char **why, struct err *e)
{
	const bool may_map = libc_loads_payload(&s->view.libc) && s->options.loader == LOADER_AUTO;

	*why = NULL;
	session_borrower(s, borrower, trampoline_bytes(s), &s->outcome.attach_longest_ns);
	int rc = loan_begin(loan, s, borrower, e);
	if (rc == -ETIMEDOUT && may_map)
		*why = "no thread came to a point where dlopen may be called";
	/* The only thread is stopped: it makes no other from now on. */
	if (rc == 0 && may_map && (*why = session_threads_against_loader(s)))
		rc = loan_end(loan, 0, e);
	return rc;
}

static int begin(struct session *s, struct loan *loan, struct borrower *borrower, struct err *e)
{
	struct err first, second;
	const char *why;

	int rc = begin_once(s, loan, borrower, &why, &first);
	if (!why || (rc < 0 && rc != -ETIMEDOUT)) {
		*e = first;
		return rc;
	}
	if (map_instead(s, why, &second) < 0)
		return err_set(e, ETIMEDOUT, "%s; nor can the payload be mapped without the loader: %s",
		               rc < 0 ? first.text : why, second.text);
	return begin_once(s, loan, borrower, &why, e);
}

struct step {
	struct session *s;
	int payload_fd;
	struct err *e;
};

static int load_once(void *context)
{
	const struct step *step = context;
	struct session *s = step->s;
	struct err *e = step->e;
	struct borrower borrower;
	struct loan loan;

	int rc = begin(s, &loan, &borrower, e);
	if (rc < 0)
		return rc;
	s->touched = true;
	/* There may have been a session that was taken over. */
	s->outcome.entries = s->outcome.python = (struct word_counts){ 0 };
	dump_writer_set_state(&s->recording.dump, DUMP_STATE_RUNNING, 0);
	if (!libc_loads_payload(&s->view.libc))
		loan_hold_others(&loan);
	return loan_end(&loan, recording_load(&loan, step->payload_fd, e), e);
}

int session_attach(struct session *s, struct err *e)
{
	const uint64_t deadline_ns = monotonic_ns() + s->options.deadline_ns;
	AUTO_CLOSE int payload_fd = -1;

	int rc = payload_memfd(&payload_fd, e);
	struct step step = { s, payload_fd, e };
	if (rc < 0)
		return rc;
	changes_forget(&s->changes);
	rc = still_moment_foresee(s, monotonic_ns() + s->options.deadline_ns, e);
	if (rc == 0)
		do
			rc = tracer_run(load_once, &step);
		while (rc == -EDEADLK && loader_moment_pause(deadline_ns));
	if (rc == 0)
		rc = target_read(&s->memory, s->payload.session, &s->payload.block, sizeof s->payload.block, e);
	return rc < 0 ? rc : patches_write(s, monotonic_ns() + s->options.deadline_ns, e);
}

static int set_more_trampolines(void *context)
{
	const struct step *step = context;
	struct session *s = step->s;
	struct err *e = step->e;
	struct borrower borrower;
	struct loan loan;

	session_borrower(s, &borrower, trampoline_bytes(s), &s->outcome.attach_longest_ns);
	int rc = loan_begin(&loan, s, &borrower, e);
	if (rc == 0)
		rc = loan_end(&loan, recording_set_trampolines(&loan, e), e);
	if (rc == 0)
		s->payload.block.trampoline_count = (uint32_t)s->view.plan.trampoline_count;
	return rc;
}

int session_patch_more(struct session *s, struct err *e)
{
	struct step step = { .s = s, .e = e };
	int rc = 0;

	if (s->view.plan.trampoline_count > s->payload.block.trampoline_count)
		rc = tracer_run(set_more_trampolines, &step);
	return rc == 0 ? patches_write_words(s, monotonic_ns() + s->options.deadline_ns, e) : rc;
}
