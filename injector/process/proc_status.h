/* SPDX-License-Identifier: MIT */
/* Fields of /proc/PID/status (proc(5)), of a process or of one of its threads. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define STATUS_BYTES 4096 /* what is longer is cut */

/* tid 0: of the process. 0 or -errno; -ENOENT, -ESRCH: it has ended. */
int proc_status_read(char text[STATUS_BYTES], pid_t pid, pid_t tid);
/* What is after "name:" and white space, up to the end of the text; NULL: there is no such field. */
const char *proc_status_field(const char *text, const char *name);
/* The number of a field, in the given base; absent: what to return if there is no such field. */
int64_t proc_status_number(const char *text, const char *name, int base, int64_t absent);
/* A field of the status of a process, up to the end of its line, "" if there is none. */
void proc_status_copy(pid_t pid, const char *name, char *value, size_t size);
