/* SPDX-License-Identifier: MIT */
/*
 * A clone of the process, which shares its memory until one of the two writes, and is read in its place: while it is
 * made the process has to stand still, not while it is read.
 *
 * A borrowed thread makes it, clone(CLONE_FILES) without a signal at its end: the program is not told of it, and its
 * own waits pass over it. The clone never runs the program's code, nor a handler of its signals, which the stub has
 * blocked. It goes on in the stub (arch/<cpu>/stub.S), where it has a name (our_clone.h), leaves the table of
 * descriptors that it shares (a copy would keep what the program closes meanwhile; sharing it would take the record
 * locks away from a program that calls execve), sleeps for a while, and ends. So it ends by itself whoever dies.
 *
 * Within that while memattach seizes it, stops it, and sets PTRACE_O_EXITKILL, which is on the clone alone. From then
 * on it dies with memattach. What remains of it in any case is a zombie, for which a thread of the process has to call
 * wait4: memory_clone_collect.
 */
#pragma once

#include "process/target.h"
#include "touch/remote/remote.h"

/* The thread is at a checkpoint, and all others are stopped. *inner: its number for the process. */
int memory_clone_make(struct remote *r, pid_t *inner, uint64_t deadline_ns, struct err *e) WARN_UNUSED;
/*
 * Holds a clone of the process that sleeps: this thread of memattach is its tracer until memory_clone_end. On failure
 * it is not held. -EAGAIN: it was killed; or whoever got its number meanwhile is let go.
 */
int memory_clone_hold(const struct target *t, pid_t pid, struct err *e) WARN_UNUSED;
/* Ends one that is held. It is a zombie then. */
int memory_clone_end(pid_t pid, struct err *e) WARN_UNUSED;
/* The thread is at a checkpoint: waits for a zombie, which has this number for the process. One that is gone is right,
 * too. -EAGAIN: it has not ended. */
int memory_clone_collect(struct remote *r, pid_t inner, uint64_t deadline_ns, struct err *e) WARN_UNUSED;
