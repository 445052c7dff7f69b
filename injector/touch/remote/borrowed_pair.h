/* SPDX-License-Identifier: MIT */
/*
 * A socket pair of the target whose ends memattach holds as well.
 *
 * The numbers of its descriptors are in the target's memory, and a hostile program may put others there: of a socket
 * that leads to another process, which would be given memattach's descriptors, or of a file whose close(2) never
 * returns. So nothing is sent before the kernel has said that both are AF_UNIX sockets of type SOCK_SEQPACKET which the
 * target itself has connected (SO_PEERCRED), nothing waits in them, and a random word that is sent at one end has come
 * out at the other. What is none of that is closed by a thread that nobody waits for.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct borrowed_pair {
	int ends[2];
};

/* pidfd: whose descriptors they are; pid: who must have made them. -EPROTO: they are no such pair. Never waits. */
int borrowed_pair_take(struct borrowed_pair *p, int pidfd, pid_t pid, const int32_t numbers[2],
                       struct err *e) WARN_UNUSED;
void borrowed_pair_close(struct borrowed_pair *p);
