/* SPDX-License-Identifier: MIT */
/* Threads as /proc/PID/task lists them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Neither ended nor exiting, which takes the memory away first. */
bool task_has_memory(pid_t pid, pid_t tid);
/* The number that the thread has for the target, which may live in a pid namespace of its own; tid if it is not known.
 */
pid_t task_inner_tid(pid_t pid, pid_t tid);
/* Has one of its threads one of these numbers, as the target sees them? */
bool task_has_inner(pid_t pid, const int32_t *numbers, size_t count);
/* The first thread that has memory: the main one unless it has ended. 0: none was found. */
pid_t task_alive(pid_t pid);
/* The same, *tid 0 where none has memory. -errno: nothing could be seen of them. */
int task_find_alive(pid_t pid, pid_t *tid) WARN_UNUSED;
