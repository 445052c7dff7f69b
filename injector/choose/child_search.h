/* SPDX-License-Identifier: MIT */
/* Processes that a process has made, as /proc/PID/task/TID/children lists them: reading only. */
#pragma once

#include "choose/chosen.h"

#define CHILD_AGE_NS 200000000ull /* a child that is younger may be about to execute another program */

/* Calls take for each child that is old enough and has memory; it returns false to be called no more. A parent that has
 * ended, or whose number means another process now, has none. */
void child_search(const struct chosen *parent, bool (*take)(void *context, const struct chosen *child), void *context);
/* Does this kernel list children (CONFIG_PROC_CHILDREN)? */
bool child_search_works(void);
