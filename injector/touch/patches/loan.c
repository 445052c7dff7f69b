/* SPDX-License-Identifier: MIT */
#include "touch/patches/loan.h"

#include "base/cleanup.h"
#include "process/clone_vm.h"
#include "touch/threads/let_go.h"

static int keep_errno(struct loan *l, struct err *e)
{
	const uint64_t none[6] = { 0 };
	uint64_t address;

	if (!l->s->view.libc.errno_location)
		return 0;
	int rc = remote_call1(l->remote, l->s->view.libc.errno_location, none, &address, l->deadline_ns, e);
	return rc < 0 ? rc : remote_keep_errno(l->remote, address, e);
}

void loan_hold_others(struct loan *l)
{
	struct session *s = l->s;
	AUTO_FREE pid_t *sharers = NULL;
	size_t count = 0;
	struct err why;

	int rc = clone_vm_find(&s->target, &sharers, &count, &why);
	if (rc == 0 && count) /* its parent does not stop before it is gone */
		rc = err_set(&why, EAGAIN, "process %d runs in its memory", sharers[0]);
	rc = rc ?: stop_all_others(&l->others, &s->target, l->thread->tid, false, &s->outcome.attach_longest_ns, &why);
	if (rc < 0 && s->options.verbose)
		session_say(s, "children that are forked meanwhile may inherit descriptors of memattach: %s", why.text);
}

static int end_loan(struct loan *l, int rc, struct err *e)
{
	struct remote *r = l->remote;
	struct err leaving = { 0 };

	if (rc == -ETIMEDOUT || rc == -ESRCH) {
		remote_abandon(r);
		return rc;
	}
	pending_error_show(&l->pending, &l->s->view.libc, r, l->deadline_ns);
	int left = remote_leave(r, clock_monotonic_ns() + l->call_ns, &leaving);
	if (left < 0)
		remote_abandon(r);
	else if (remote_erase(&l->s->writer, r->cave, &leaving) < 0 && target_alive(&l->s->target))
		session_say(l->s, "memattach: %s", leaving.text);
	if (rc < 0 || left == 0)
		return rc;
	*e = leaving;
	return left;
}

struct borrowing {
	struct session *s;
	const struct borrower *b;
	loan_fn use;
	void *context;
};

static int lend(void *context, struct remote *r, struct tracee *t, struct err *e)
{
	const struct borrowing *x = context;
	struct session *s = x->s;
	struct loan l = { .s = s, .remote = r, .thread = t, .call_ns = x->b->call_ns };

	l.deadline_ns = clock_monotonic_ns() + l.call_ns;
	int rc = keep_errno(&l, e);
	if (rc < 0) {
		remote_abandon(r);
		return rc;
	}
	pending_error_hide(&l.pending, &s->view.libc, r);
	rc = end_loan(&l, x->use(&l, x->context, e), e);
	if (l.others.count + l.others.sleeper_count) {
		if (t->seized && t->tid == s->target.pid)
			let_go_first(t, clock_monotonic_ns() + LET_GO_FIRST_NS);
		stop_all_end(&l.others, x->b->longest_ns);
	}
	tracee_detach(t);
	return rc;
}

int loan_run(struct session *s, const struct borrower *b, loan_fn use, void *context, struct err *e)
{
	struct borrowing x = { s, b, use, context };

	return borrow_thread(b, lend, &x, e);
}
