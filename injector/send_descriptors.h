/* SPDX-License-Identifier: MIT */
/*
 * Gives descriptors to the target without a name in any file system: the borrowed thread makes a socket pair, memattach takes one end with
 * pidfd_getfd(2) and sends the descriptors through it (SCM_RIGHTS), the thread receives them. All of them are on the clean-up list
 * of the stub, so they are closed when it leaves, whatever happens.
 */
#ifndef MEMATTACH_SEND_DESCRIPTORS_H
#define MEMATTACH_SEND_DESCRIPTORS_H

#include "remote.h"

#define SEND_MAX 4

/* At a checkpoint. Uses the last kilobyte of the data of the work area, until the thread leaves. remote_fds are numbers in the target. */
int send_descriptors(struct remote *r, int pidfd, const int *fds, unsigned count, int *remote_fds, uint64_t deadline_ns,
		     struct err *e) WARN_UNUSED;

#endif
