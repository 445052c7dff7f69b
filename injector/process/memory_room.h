/* SPDX-License-Identifier: MIT */
/*
 * How much memory memattach may still take.
 *
 * The memory of the dump cannot be reclaimed. If it fills the memory cgroup that memattach runs in, or the machine, the
 * kernel ends a process of that group, and in a container that may be the target. So memattach takes at most half of
 * what is left, and is the first to be ended if it comes to that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* -ENOMEM: bytes are more than half of what is left, in a cgroup of this process or on the machine; the text says
 * where. */
int memory_room_check(uint64_t bytes, struct err *e) WARN_UNUSED;
/* What the memory cgroups of a process have left, with the page cache that can be reclaimed; UINT64_MAX: no limit. */
uint64_t memory_room_of(pid_t pid);
/* What the machine has left (MemAvailable); UINT64_MAX: unknown. */
uint64_t memory_room_of_machine(void);
/* How much of its limit the fullest of the process's memory cgroups, and of those that they are in, uses, without the
 * page cache that can be reclaimed at no cost; NAN: none has a limit. */
double memory_room_used(pid_t pid);
/* The part of the last ten seconds in which a task of its cgroup waited for memory (PSI: some avg10), or of the machine
 * where groups do not tell; NAN: unknown. */
double memory_room_pressure(pid_t pid);
/* Is one of its memory cgroups ended as a whole when memory runs out (memory.oom.group)? */
bool memory_room_ends_all(pid_t pid);
#define MEMORY_ROOM_PATH 800
/* The file in which its memory cgroup counts what the OOM killer ended there; "": unknown. To be asked for while it
 * lives; memory_room_kills reads the number, 0 unknown. */
void memory_room_events(pid_t pid, char file[MEMORY_ROOM_PATH]);
uint64_t memory_room_kills(const char *file);
/* When memory runs out the kernel shall end memattach first. Needs no privilege; a failure is of no importance. */
void memory_room_go_first(void);
