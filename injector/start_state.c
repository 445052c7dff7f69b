/* SPDX-License-Identifier: MIT */
#include "start_state.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* open() takes the lowest number that is free. Without /dev/null to write to there is nothing that could be said,
 * either. */
static void open_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		_exit(EXIT_FAILURE);
	close(fd);
}

static void settle_signals(void)
{
	sigset_t set;

	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond a limit shall fail, and be said */
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
}

void start_state_settle(void)
{
	open_standard_descriptors();
	settle_signals();
	raise_descriptors();
}
