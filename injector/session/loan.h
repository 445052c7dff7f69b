/* SPDX-License-Identifier: MIT */
/*
 * A thread that is borrowed for some remote calls: what attach and detach do before and after them. What the calls do
 * to errno of the thread, and to what dlerror() would tell it, is undone. (The payload knows no errno: where no
 * function of a C library can be found, none is called.)
 */
#ifndef MEMATTACH_LOAN_H
#define MEMATTACH_LOAN_H

#include "pending_error.h"
#include "session.h"

struct loan {
	struct session *s;
	struct remote remote;
	struct tracee thread;
	struct pending_error pending;
	uint64_t call_ns;     /* that the calls may take, and again the way back */
	uint64_t deadline_ns; /* of the calls */
};

/* Afterwards the thread is at a checkpoint: remote_call and its like may be used. On failure there is no loan. */
int loan_begin(struct loan *l, struct session *s, const struct borrower *b, struct err *e) WARN_UNUSED;
/*
 * rc: what the calls came to. Brings the thread back and clears the padding. A thread that is still in a call
 * (-ETIMEDOUT) or gone (-ESRCH) is left to its stub. Returns rc, or if that is 0, why the thread could not be brought
 * back.
 */
int loan_end(struct loan *l, int rc, struct err *e) WARN_UNUSED;

#endif
