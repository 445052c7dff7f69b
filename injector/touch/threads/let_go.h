/* SPDX-License-Identifier: MIT */
/*
 * Threads that are still traced, and are nobody's concern any more.
 *
 * Some have left their stop, and are traced until their tracer ends, for the reason in tracer.h. What signals they meet
 * is theirs, or is handed back to the first thread (hand_back.h).
 *
 * Others were given up: a thread that waits for a vfork child or for a disk does not stop when it is asked to, and the
 * kernel neither takes the request back, as long as the tracer lives, nor detaches from a thread that runs. It stops
 * when it comes back, and is then resumed.
 *
 * Each thread that traces has its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "touch/threads/tracee.h"

#define LET_GO_FIRST_NS 100000000ull

/* Takes over a stopped thread and resumes it. False: it is to be detached from its stop. */
bool let_go(struct tracee *t);
/*
 * Detaches the first thread of a process, and waits until it has had its turn on a processor and has taken what signals
 * wait: until then the kernel gives others what comes for the process, because this one has been woken already.
 */
void let_go_first(struct tracee *t, uint64_t deadline_ns);
/* Takes over a thread that is seized and runs, or was asked to stop and has not. */
void let_go_running(struct tracee *t);
/* Takes such a thread back: it is seized. 1: it is *t; 0: there is none; -EBUSY: it is, otherwise than wanted. */
int let_go_take_back(struct tracee *t, pid_t tid, bool filtered, struct err *e) WARN_UNUSED;
/* Resumes those that have stopped since; true: there were some. To be called now and then, and when SIGCHLD tells of a
 * stop, while no other thread is stopped. */
bool let_go_look(void);
/* The same for one that waitid() tells of, whether it is among them or not. */
void let_go_look_at(pid_t tid);
/* A pause in which they are looked at, at once. For a tracer (tracer.h); else only at its end. */
void let_go_pause(uint64_t ns);
/* Waits until all are on their way. Then the tracer must end. */
void let_go_finish(void);
