/* SPDX-License-Identifier: MIT */
/* Which processes of the table fork too often for a session (fork_budget.h), and that they have none. */
#pragma once

#include "system/process_table.h"

/* The process of this number has forked. */
void table_forks_count(struct process_table *t, pid_t pid);
/*
 * Looks at all that have a session or may get one. A session that has to end is told so, and ends later; a process
 * without one is left for a while, of which left is told.
 */
void table_forks_judge(struct process_table *t, double part, uint64_t now_ns,
                       void (*left)(void *context, const struct seen_process *p), void *context);
/* It gets no session until it has not forked so often for a while: twice as long for each session that it has lost so
 * beside the first, up to about an hour. */
void table_forks_leave(struct seen_process *p, uint64_t now_ns);
