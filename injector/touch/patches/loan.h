/* SPDX-License-Identifier: MIT */
/*
 * A thread that is borrowed for some remote calls: what attach and detach do before and after them. What the calls do
 * to errno of the thread, and to what dlerror() would tell it, is undone. (The payload knows no errno: where no
 * function of a C library can be found, none is called.)
 */
#pragma once

#include "session/session.h"
#include "touch/threads/stop_all.h"
#include "elf/libc.h"
#include "touch/remote/remote.h"

/*
 * What dlerror() would still tell the borrowed thread. dlopen, dlsym and dlclose clear it, so the thread's pointer to
 * it is taken away before the first of them and put back after the last. If memattach dies in between, the message is
 * lost. glibc from 2.34 on; musl's calls clear nothing.
 */
struct pending_error {
	uint64_t address; /* of the thread's pointer, 0: nothing is pending, or unknown */
	int row;          /* of the table of changes */
};

struct loan {
	struct session *s;
	struct remote *remote;
	struct tracee *thread;
	struct pending_error pending;
	struct stop_all others;
	uint64_t call_ns;     /* that the calls may take, and again the way back */
	uint64_t deadline_ns; /* of the calls */
};

/* The thread is at a checkpoint: remote_call and its like may be used. Afterwards it is brought back and the padding
 * cleared. A thread that is still in a call (-ETIMEDOUT) or gone (-ESRCH) is left to its stub. */
typedef int (*loan_fn)(struct loan *l, void *context, struct err *e);

/* Returns what use has returned; or if that is 0, why the thread could not be brought back. If it was not called: why
 * there is no loan (borrow_thread). */
int loan_run(struct session *s, const struct borrower *b, loan_fn use, void *context, struct err *e) WARN_UNUSED;
/*
 * Before the thread is given descriptors, until the loan ends: nobody else may fork, as the child would inherit them.
 * So all others are stopped, if they can be, but for those that sleep in a call that a stop would harm: who of them
 * wakes meanwhile and forks has a child with these descriptors. Not where the calls take locks that others may hold.
 */
void loan_hold_others(struct loan *l);
