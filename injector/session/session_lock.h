/* SPDX-License-Identifier: MIT */
/*
 * One memattach at a time acts on a process: from the first look to the end of its session.
 *
 * There are two locks of flock(2). The kernel takes them from a holder that dies, and no file or name of them is left
 * or can be forged.
 *
 * - On /proc/PID/environ, which only root, users of the process, and who else may trace it can open. It keeps those
 *   apart that see the process through the same mount of /proc.
 * - On a pidfd: since Linux 6.9 all pidfds of a process share one inode, whichever mount, user and namespace they were
 *   made in. But whoever sees the process can lock one. So a stranger's lock, of a user who is neither root, nor this
 *   one, nor one of the process, does not count where the first lock was taken. Nor does one that nobody is seen to
 *   have (it is in a message, say), if this is root, and not in a PID namespace.
 *
 * So a session can be kept away by those only who may end the process anyway, and they are named.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "process/target.h"

/*
 * The lock lasts until target_close or the death of this process. -EBUSY: somebody has it; e says who and what to do,
 * *holder is the process, 0 if it cannot be seen from here. It waits for some seconds for who has been killed, and for
 * processes of a memattach that has ended (one that writes the dump, say), which have its descriptors.
 */
int session_lock_take(struct target *t, pid_t *holder, struct err *e) WARN_UNUSED;
/* Before that: nothing of the target is needed any more. */
void session_lock_release(struct target *t);
#define SESSION_LOCK_TEXT 80
/* Number, name and user of a process. */
void session_lock_describe(pid_t holder, char text[SESSION_LOCK_TEXT]);
/* Who has it, strangers apart; 0: nobody, or nobody that can be seen from here. */
pid_t session_lock_holder(const struct target *t);
/*
 * Is this process a memattach that has the lock, and no stranger? The kernel tells it by the descriptors of the
 * process: nothing that the target claims counts. To be asked before a signal is sent to it.
 */
bool session_lock_is_memattach(const struct target *t, pid_t holder);
/* Has it been killed, or given up its memory, so that its descriptors go next? Then nothing more tells what it was. A
 * process of a memattach that was killed, which looks at memory, say, is killed with it. */
bool session_lock_is_ending(pid_t pid);

/*
 * A memattach that waits for its next session (--every), or for a condition (--when), says so by a lock of another kind
 * on /proc/PID/environ: a lock of fcntl(2) for reading, which keeps nobody away, and which no stranger can prevent. It
 * lasts until target_close, until this process closes any other descriptor that leads there, or until it has taken the
 * lock itself; its children do not have it. Nothing is done if it was announced already, or may not be. -errno.
 */
int session_lock_announce(struct target *t, struct err *e) WARN_UNUSED;
/* Who has done so, 0: nobody, or nobody that can be seen from here; and whether that is a memattach, as above. */
pid_t session_lock_announced(const struct target *t);
bool session_lock_is_announced_by_memattach(const struct target *t, pid_t holder);
