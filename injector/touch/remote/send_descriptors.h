/* SPDX-License-Identifier: MIT */
/*
 * Gives descriptors to the target without a name in any file system: the borrowed thread makes a socket pair, memattach
 * takes both ends with pidfd_getfd(2), proves that they are one pair (borrowed_pair.h), and sends the descriptors
 * through one of them (SCM_RIGHTS); the thread receives them. All of them are on the clean-up list of the stub, so they
 * are closed when it leaves, whatever happens.
 */
#pragma once

#include "touch/remote/remote.h"

#define SEND_MAX 3

/*
 * At a checkpoint. Uses the last kilobyte of the data of the work area, until the thread leaves. remote_fds are numbers
 * in the target. With them goes the channel (channel.h), through which the thread synchronises with us from then on. A
 * thread with a seccomp filter gets none: if memattach dies its filter is in force at once, and might kill the process
 * at one system call more. -ETIMEDOUT, -ESRCH: as of remote_call; after any other failure the thread is at a checkpoint
 * as before, and has no channel.
 */
int send_descriptors(struct remote *r, int pidfd, const int *fds, unsigned count, int *remote_fds, uint64_t deadline_ns,
                     struct err *e) WARN_UNUSED;
