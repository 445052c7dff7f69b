/* SPDX-License-Identifier: MIT */
/*
 * The kernel's word that a process begins or executes another program (its connector of process events, cn_proc). It is
 * given to root in the first PID and user namespace; elsewhere nothing comes, and whoever waits has to look.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct process_events {
	int fd;     /* readable when something has come; -1: there are none here */
	bool works; /* the kernel has agreed */
	/* NULL, or who is told of each fork that made a process; parent is its first thread's number. */
	void (*forked)(void *context, pid_t parent);
	void *context;
};

/* Sets fd and works. */
void process_events_open(struct process_events *p);
void process_events_close(struct process_events *p);
/* Takes all that has come. True: a process has begun or executes another program, or it cannot be known. */
bool process_events_take(struct process_events *p);
