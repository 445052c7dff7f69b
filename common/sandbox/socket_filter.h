/* SPDX-License-Identifier: MIT */
/* What the kernel keeps out of a socket. */
#pragma once

#include <linux/filter.h>

/* code says how much of a message is kept; where the kernel does not take it, all of each is. */
void socket_filter_attach(int fd, struct sock_filter *code, unsigned short count);
