/* SPDX-License-Identifier: MIT */
/*
 * Processes that run in the target's memory without being its threads: children of vfork, and of clone with CLONE_VM
 * alone. They may be inside the payload like any thread, and the latter use the thread pointer, and so the recursive
 * locks and the allocator's cache, of the thread that made them.
 */
#pragma once

#include "process/target.h"

/* All of them, as kcmp(2) tells; *list is malloc'ed. -ENOSYS, -EPERM: there is no kcmp. */
int clone_vm_find(const struct target *t, pid_t **list, size_t *count, struct err *e) WARN_UNUSED;
/* Does this process (still) run in the target's memory? */
bool clone_vm_is_one(const struct target *t, pid_t pid);
/* Does the thread wait in the kernel until its child of vfork has left the memory? As far as can be told: an unknown
 * call may be that. */
bool clone_vm_may_wait(const struct thread_info *thread);
/*
 * -EBUSY, with the reason, if a thread of the target may have its thread pointer in use by another process now. A child
 * of vfork is no such case: its parent thread sleeps, uninterruptibly, until the child has left the memory.
 */
int clone_vm_check_thread_pointers(const struct target *t, const struct thread_info *threads, size_t count,
                                   struct err *e) WARN_UNUSED;
