/* SPDX-License-Identifier: MIT */
/*
 * Ctrl-C, and calls that block on the target's will.
 *
 * A page of the target may be under userfaultfd, or belong to a file system that the target serves itself: reading or
 * writing it lasts as long as the target likes, and only SIGKILL ends the call. So a thread of memattach that does
 * nothing else waits for SIGINT, SIGTERM and SIGHUP, which are blocked everywhere else, and for the length of such
 * calls; it kills memattach
 *
 *   - if a call does not end for three seconds while a thread of the target is stopped,
 *   - if a call does not end for ten seconds after such a signal: a thread of the target that maps memory, and gets no
 *     processor, keeps all readers waiting meanwhile,
 *   - if a call does not end for a second after another one.
 *
 * A thread that is ready to run is in a call because it waits for a processor: that is not counted.
 *
 * That is safe at any instant (remote.h), and `memattach --detach` finishes. Calls are counted, not timed: it costs two
 * stores; while nothing is stopped and nobody has asked the thread sleeps.
 *
 * The main loop and every wait ask here whether they were asked to end: the first signal ends an attach, with an undo,
 * or a session; a detach goes on, until the second one gives it up.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* From now on, and from the first call on, the three signals are blocked. Without a thread (pids cgroup, RLIMIT_NPROC)
 * they are only noticed when somebody asks. */
int watchdog_start(pid_t target, struct err *e) WARN_UNUSED;
/* Readable from the first signal on; not to be read. -1: not started. */
int watchdog_fd(void);
/* How many signals have come. Two within a moment are one: some programs pass them on to all of a group. */
unsigned watchdog_asked(void);
/* Those among them that were not sent by a memattach --detach: what is being done for a --detach is not given up for
 * another one. */
unsigned watchdog_asked_by_user(void);
/* Whoever waits for something gives up. */
bool watchdog_asked_twice(void);
/* -EINTR if a signal has come, as the error of a step that can be undone. */
int watchdog_check(struct err *e) WARN_UNUSED;

/* Threads of the target are stopped from now on, or no longer. */
void watchdog_hold(bool held);
/* Around each call that lasts as long as the target likes. Any thread. */
void watchdog_call_begin(void);
void watchdog_call_end(void);
/* This thread waits in waitid, which SIGALRM interrupts: it shall hear of a second signal. */
void watchdog_waits(bool waits);
