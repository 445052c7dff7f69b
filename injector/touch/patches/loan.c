/* SPDX-License-Identifier: MIT */
#include "touch/patches/loan.h"

#include "base/cleanup.h"
#include "process/clone_vm.h"
#include "touch/threads/let_go.h"
#include "arch/registers.h"

/* The thread is at a checkpoint. Best effort: a message that cannot be kept is none that may stop an attach. */
static void pending_error_hide(struct pending_error *p, const struct libc *libc, struct remote *r)
{
	const uint64_t none = 0;
	uint64_t address = registers_tp(&r->saved) + (uint64_t)libc->dlerror_result, value = 0;

	*p = (struct pending_error){ 0 };
	if (!libc->dlerror_result || target_read_u64(r->memory, address, &value, ERR_IGNORED) < 0 || !value)
		return;
	int row = target_writer_add_change(r->writer, CHANGE_ERROR_TEXT, address, &value, &none, sizeof none,
	                                   ERR_IGNORED);
	if (row >= 0)
		*p = (struct pending_error){ address, row };
}

/* The same, before it is resumed. */
static void pending_error_show(const struct pending_error *p, const struct libc *libc, struct remote *r,
                               uint64_t deadline_ns)
{
	const uint64_t none[6] = { 0 };
	uint64_t now = 0, text;

	if (!p->address)
		return;
	/* A call of ours has failed. What it left is freed by the second dlerror(). */
	for (int i = 0; i < 2 && libc->dlerror && target_read_u64(r->memory, p->address, &now, ERR_IGNORED) == 0 && now;
	     i++)
		if (remote_call1(r, libc->dlerror, none, &text, deadline_ns, ERR_IGNORED) < 0)
			break;
	if (target_writer_undo(r->writer, p->row, NULL, ERR_IGNORED) < 0)
		changes_set(r->writer->changes, p->row, CHANGE_GONE);
}

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
	else if (remote_erase(&l->s->writer, &r->cave, &leaving) < 0 && target_alive(&l->s->target))
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
