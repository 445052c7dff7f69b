/* SPDX-License-Identifier: MIT */
/* How many more tasks a process may have: each thread is one, and each child. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* May it have another one, and keep an eighth of what it may have? By the pids cgroups that it is in, and by
 * RLIMIT_NPROC, which counts all tasks of its user. What is not known is no limit. */
bool task_room_is_ample(pid_t pid);
