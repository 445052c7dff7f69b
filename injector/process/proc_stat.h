/* SPDX-License-Identifier: MIT */
/* Fields of /proc/PID/stat, counted from 1 as in proc(5), of a process or of one of its threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* A field of the text of such a file; -EINVAL. */
int proc_stat_field(const char *text, unsigned field, char *value, size_t size) WARN_UNUSED;
/* A file below /proc/PID could not be read, rc says why: has the process, or the thread, gone? If not, nothing is known
 * of it: descriptors or memory are short here. */
bool proc_stat_has_gone(int rc);
/* -ESRCH: the process has gone; or rc. */
int proc_stat_unread(int rc, pid_t pid, struct err *e) WARN_UNUSED;
/* A field of the process, from 3 on, as a number; -ESRCH: there is none. */
int proc_stat_number(pid_t pid, unsigned field, uint64_t *value, struct err *e) WARN_UNUSED;
/* CPU time of the process and of the children that it has waited for, in ticks' steps; 0 if there is none. */
uint64_t proc_stat_cpu_ns(pid_t pid);
/* A field of a thread as text. -ESRCH: there is no such thread. */
int proc_stat_text(pid_t pid, pid_t tid, unsigned field, char *value, size_t size) WARN_UNUSED;
