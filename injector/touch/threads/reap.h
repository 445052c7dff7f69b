/* SPDX-License-Identifier: MIT */
/*
 * A traced thread that has ended stays until its tracer has taken notice of it, and so long its process can neither end
 * nor complete an execve. PTRACE_SEIZE of another thread waits for that execve: if nobody takes notice meanwhile,
 * tracer and target wait for each other for ever.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "base/err.h"

/* Room for one more: before it is seized, not between reaper_start and reaper_stop. Then the list of those that are
 * traced. */
int reap_reserve(struct err *e) WARN_UNUSED;
void reap_add(pid_t tid);
void reap_remove(pid_t tid);

/* Takes notice of all of the list that have ended; stops are left alone. */
void reap_ended(void);
/* How many there have been. */
unsigned reap_count(void);

/* Between these two they are noticed while the program is in a system call, too (which goes on if it is PTRACE_SEIZE).
 */
struct reaper {
	struct sigaction action;
	sigset_t blocked;
};
void reaper_start(struct reaper *r);
void reaper_stop(const struct reaper *r);
