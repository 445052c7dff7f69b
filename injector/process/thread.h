/* SPDX-License-Identifier: MIT */
/* One thread of a process, as /proc tells of it. Nothing here changes it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "process/blocked_call.h"

struct thread_info {
	pid_t tid;
	bool filtered; /* has a seccomp filter */
	bool strict;   /* in seccomp's strict mode, in which the kernel also forbids the cycle counter */
	bool first;    /* the one that the program began with */
	bool sleeping;
	char state;               /* R S D T t Z … of /proc/PID/task/TID/stat */
	struct blocked_call call; /* that it sleeps in; number -1 and zeros: it runs */
	enum stop_effect effect;  /* on that */
};

/* Fills in the rest for info->tid. */
void thread_look(pid_t pid, struct thread_info *info);

/* A state of it in which it has ended, or '?': there is no such thread. */
bool thread_state_has_ended(char state);
/* Also true while it waits, as a zombie, for its last rites. */
bool thread_has_ended(pid_t pid, pid_t tid);
/* When it began, in the clock ticks since boot of proc(5); UINT64_MAX: it has ended. */
uint64_t thread_birth_ticks(pid_t pid, pid_t tid);
/* How many threads run or want to, on the whole machine; 0 unknown. */
unsigned long thread_runnable_count(void);
/*
 * -ETIMEDOUT, for a thread that was asked to stop, with what its state tells of the reason. A running thread stops at
 * once: one that is ready to run waits for its turn.
 */
int thread_did_not_stop(pid_t pid, pid_t tid, struct err *e) WARN_UNUSED;

/* -EAGAIN: it is traced, by another process. */
int thread_check_tracer(pid_t pid, pid_t tid, struct err *e) WARN_UNUSED;
/* How often the thread was given a processor, or had to wait for one; -1: that cannot be told. As long as it is the
 * same number, and the thread slept before and after, it has slept all the time. */
int64_t thread_switches(pid_t pid, pid_t tid);
/* How long it has had one, in ns; 0: that cannot be told. */
int64_t thread_ran_ns(pid_t pid, pid_t tid);
