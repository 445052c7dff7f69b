/* SPDX-License-Identifier: MIT */
/* Giving up what is not needed any more. */
#ifndef MEMATTACH_PRIVILEGES_H
#define MEMATTACH_PRIVILEGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * For a process that only computes: no descriptors but those of keep (sorted, ascending), a user of its own that
 * nobody can open (rights.h), no capabilities, no more memory than data_bytes beyond what it has, cpu_seconds of time,
 * and a filter that lets through what the allocator and threads need, and reading and writing what is open. Best
 * effort: what the kernel has not, and root may not, is passed over. Ends with the parent.
 */
void privileges_drop_all(const int *keep, size_t keep_count, uint64_t data_bytes, unsigned cpu_seconds);

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
