/* SPDX-License-Identifier: MIT */
/* Giving up what is not needed any more. */
#ifndef MEMATTACH_PRIVILEGES_H
#define MEMATTACH_PRIVILEGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * For a process that only computes: no descriptors but those of keep (sorted, ascending), no capabilities, another user
 * where memattach is root, no more memory than data_bytes beyond what it has, cpu_seconds of time, and a filter that
 * lets through what the allocator and threads need, and reading and writing what is open. Best effort: what the kernel
 * has not is passed over. Ends with the parent.
 */
void privileges_drop_all(const int *keep, size_t keep_count, uint64_t data_bytes, unsigned cpu_seconds);

/*
 * For a process that is about to execute a program which reads files of the target: another user (that of the target,
 * or nobody if that is root), no capabilities, none to be gained by execve, no network, no connection to anything, no
 * look at other processes, no terminal (it leads a session of its own); a lower priority, limits of memory, time and of
 * what it writes to a file. 0, or -EPERM if it would still be root, or have a capability or a terminal: then nothing is
 * to be executed. To be called by a child that leads no process group.
 */
struct privileges_limits {
	uint64_t data_bytes, file_bytes;
	unsigned cpu_seconds;
};
int privileges_drop_to(uid_t uid, gid_t gid, const struct privileges_limits *limits);

/*
 * The same for a program that draws on the terminal, as the user that memattach runs as: session/live_child.h says why.
 * It writes to no file, and ends with the process that started it. -EPERM if it would have a capability.
 */
int privileges_drop_for_view(void);

/*
 * For memattach once it is attached: capabilities down to those that follow and detach need, and none can be gained by
 * execve. They stay where memattach has no CAP_SYS_PTRACE: then it may trace the target because it has all capabilities
 * that the target has (ptrace(2)).
 *
 * No seccomp filter: the kernel lets only a process without one suspend the filter of a thread
 * (PTRACE_O_SUSPEND_SECCOMP). No Landlock: a process in a domain traces none outside of it.
 */
void privileges_keep_for_detach(void);

#endif
