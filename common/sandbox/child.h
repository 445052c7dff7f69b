/* SPDX-License-Identifier: MIT */
/*
 * Child processes. All that memattach and memanalyze have are started here (check_sandbox), by one rule:
 *
 *   - a child knows when its parent is gone, unless it has to finish without: what it works for is gone, too;
 *   - nobody waits for one without a bound. One that was killed and does not end hangs in the kernel, on a file system
 *     that stands still: it is left there, and dies when it comes back.
 *
 * What a child gives up: rights.h. What it keeps open: close_all_but.h.
 */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/*
 * As fork(2): its number, 0 in the child, -1 with errno. The child gets end_signal when the thread that has started it
 * ends, and ends at once if that was before it could ask for the signal; 0: it outlives its parent.
 */
pid_t child_start(int end_signal);
/* The same for a process that has changed its user, which makes the kernel forget. */
void child_ends_with_parent(int end_signal);

/* Has it ended after so many milliseconds? Its status stays to be asked for. */
bool child_ends_within(pid_t child, int ms);
/* Kills it, and waits for a second. */
void child_end(pid_t child);
/* What waitpid(2) tells of one that ends by itself, in time that only it decides about: a session. -1: it is none of
 * ours. */
int child_wait(pid_t child);
/*
 * Waits for one that works for us. goes_on is called ten times a second; when it returns false the child is killed.
 * What waitpid(2) tells, and what it has used; -1: it does not end.
 */
int child_await(pid_t child, bool (*goes_on)(void *context), void *context, struct rusage *used);
