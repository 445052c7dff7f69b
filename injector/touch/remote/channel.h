/* SPDX-License-Identifier: MIT */
/*
 * How memattach and the borrowed thread meet once the thread has a socket whose other end only memattach holds.
 *
 * Stops of ptrace are the dear part of an attach and of a detach: PTRACE_SYSCALL stops the thread twice in each system
 * call, of which dlopen makes a dozen and a half, and the patching of each library two; and after each stop it waits
 * for a processor again. With a channel it runs freely: at a checkpoint it sends one byte that says which, and waits
 * for one byte back. If memattach dies the kernel closes its end: the thread reads the end of the stream and finishes
 * alone, as it does after a checkpoint that no tracer notices.
 */
#pragma once

#include "touch/threads/tracee.h"

struct channel {
	int here;     /* our end, -1: there is no channel */
	int there;    /* number of the other end in the target, -1: not sent yet */
	bool awaited; /* the thread waits for our answer */
};

#define CHANNEL_NONE ((struct channel){ .here = -1, .there = -1 })

/* other: the end that is to be sent to the target, for the caller to close. */
int channel_open(struct channel *c, int *other, struct err *e) WARN_UNUSED;
/*
 * Lets the thread go on to its next checkpoint (enum checkpoint of control.h). Job control on the way is passed.
 * -ETIMEDOUT: it runs on; -ESRCH: it has ended; -EPROTO: it has closed its end.
 */
int channel_meet(struct channel *c, struct tracee *t, unsigned *checkpoint, uint64_t deadline_ns,
                 struct err *e) WARN_UNUSED;
/* The same for a thread that goes on already. */
int channel_hear(struct channel *c, struct tracee *t, unsigned *checkpoint, uint64_t deadline_ns,
                 struct err *e) WARN_UNUSED;
/* Answers, if an answer is awaited. */
int channel_answer(struct channel *c, struct err *e) WARN_UNUSED;
/* A thread that waits reads the end of the stream. */
void channel_close(struct channel *c);
