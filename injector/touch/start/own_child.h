/* SPDX-License-Identifier: MIT */
/*
 * A child of ours under ptrace. Whoever traces its own child takes the child's end with an ordinary wait, and then the
 * exit status is gone before it is asked for: here the end is only looked at.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum child_event {
	CHILD_RUNS,   /* nothing until the deadline */
	CHILD_ENDED,  /* it is a zombie */
	CHILD_SIGNAL, /* stopped: number is a signal that it is to be given */
	CHILD_EXEC,   /* stopped at PTRACE_EVENT_EXEC */
	CHILD_STOP,   /* stopped: PTRACE_INTERRUPT, or job control */
};

/* Traces it until execve; false: it may not. Nothing of it changes. */
bool own_child_seize(pid_t pid);
/* It is stopped: it goes on without a tracer, with the signal `number`, 0 none. False: that could not be done. */
bool own_child_let_go(pid_t pid, int number);
/* deadline_ns: CLOCK_MONOTONIC, UINT64_MAX: none. Signals do not end the wait. */
enum child_event own_child_wait(pid_t pid, uint64_t deadline_ns, int *number);
/* Waits for execve, or the end: gives it the signals that come, and leaves it stopped while job control has it so. */
enum child_event own_child_wait_past_signals(pid_t pid, uint64_t deadline_ns);
/* Stops it. CHILD_STOP, CHILD_ENDED, or CHILD_RUNS after the deadline: the stop may still come. */
enum child_event own_child_stop(pid_t pid, uint64_t deadline_ns);
