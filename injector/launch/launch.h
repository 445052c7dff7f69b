/* SPDX-License-Identifier: MIT */
/*
 * memattach -- COMMAND: three processes, and one that only hears (group_witness.h).
 *
 *   memattach   the one that was started: the parent of the program. It passes signals on, and ends as the program ends
 *   the program executed by a child as it would be without us: signal actions and mask, limits, alarm, descriptors as
 *               they were inherited, in the process group and on the terminal of memattach. It is held at its entry
 *               (entry_hold.h) until it has been attached to
 *   the session another child, in a process group of its own, so that Ctrl-C and Ctrl-Z reach it only through
 * memattach. It attaches to the program as to any other process, and writes the dump
 *
 * The session is apart from the parent because a parent that traces its child could take its end for that of a thread,
 * and its exit status would be lost; and so that a stopped memattach does not let the lease of the recording pass.
 *
 * The program comes first: what cannot be attached to runs on without being profiled, and that is said. If memattach is
 * killed, at any moment, the program goes on, the session detaches; if the session is killed, the program goes on, and
 * memattach still ends as it does.
 *
 * Signals: the terminal sends its own to the program itself. HUP, INT, QUIT, TERM, USR1, USR2 and TSTP that a process
 * sends to memattach are passed on, unless it has sent them to all of the group, the program among them. SIGHUP of a
 * terminal that is gone is passed on where memattach leads the session: the kernel tells nobody else. When the program
 * has ended they are for the session.
 *
 * Job control: memattach stops when the program is stopped by TSTP, TTIN or TTOU, not before and not by itself, so the
 * shell sees the job as it would see the program; when memattach is continued, so is the program. A death signal
 * (PR_SET_PDEATHSIG) that memattach was started with is not the program's: as any signal it is passed on, if it can be.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* As env(1), nohup(1) and timeout(1) have them. */
enum { LAUNCH_FAILED = 125, LAUNCH_NOT_EXECUTED = 126, LAUNCH_NOT_FOUND = 127 };

/*
 * Starts the command and returns when it has ended and its session, too: the exit status for memattach. For a program
 * that a signal has ended it does not return: the same signal ends memattach. session is called in a process of its
 * own; a byte that it writes to ready says that the program has been attached to, and may go on.
 */
int launch_run(char **command, bool quiet, int (*session)(void *context, pid_t pid, int ready), void *context);
