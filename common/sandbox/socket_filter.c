/* SPDX-License-Identifier: MIT */
#include "sandbox/socket_filter.h"

#include <sys/socket.h>

void socket_filter_attach(int fd, struct sock_filter *code, unsigned short count)
{
	const struct sock_fprog program = { count, code };

	(void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}
