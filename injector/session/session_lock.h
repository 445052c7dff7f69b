/* SPDX-License-Identifier: MIT */
/*
 * One memattach at a time acts on a process: from the first look to the end of its session.
 *
 * The lock is flock(2) on a pidfd of the process. Since Linux 6.9 all pidfds of a process share one inode, whichever
 * user and namespace they were made in; the kernel takes the lock from a holder that dies, and there is no file and no
 * name that could be left or forged. On older kernels the lock is on /proc/PID/stat, which keeps those apart that see
 * the process through the same mount of /proc.
 *
 * Whoever may open a pidfd may hold the lock, so a stranger can keep memattach away from a process, and is named then.
 * Nothing else follows from holding it.
 */
#ifndef MEMATTACH_SESSION_LOCK_H
#define MEMATTACH_SESSION_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"
#include "target.h"

/*
 * The lock lasts until target_close or the death of this process. -EBUSY: somebody has it; e says who and what to do,
 * *holder is the process, 0 if it cannot be seen from here.
 */
int session_lock_take(struct target *t, pid_t *holder, struct err *e) WARN_UNUSED;
/* Before that: nothing of the target is needed any more. */
void session_lock_release(struct target *t);
/* Who has it, 0: nobody, or nobody that can be seen from here. */
pid_t session_lock_holder(const struct target *t);
/*
 * Is this process a memattach that has the lock? The kernel tells it by the descriptors of the process: nothing that
 * the target or the process claims counts. To be asked before a signal is sent to it.
 */
bool session_lock_is_memattach(const struct target *t, pid_t holder);

/*
 * A memattach that waits for its next session (--every), or for a condition (--when), says so by a lock of another kind
 * at the same place: a lock of fcntl(2) for reading, which keeps nobody away. It lasts until target_close, until this
 * process closes any other descriptor that leads there, or until it has taken the lock itself; its children do not have
 * it. Nothing is done if it was announced already. -errno.
 */
int session_lock_announce(struct target *t, struct err *e) WARN_UNUSED;
/* Who has done so, 0: nobody, or nobody that can be seen from here; and whether that is a memattach, as above. */
pid_t session_lock_announced(const struct target *t);
bool session_lock_is_announced_by_memattach(const struct target *t, pid_t holder);

#endif
