/* SPDX-License-Identifier: MIT */
#include "host/start_state.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static const int settled[] = { SIGCHLD, SIGPIPE, SIGXFSZ };
#define SETTLED (sizeof settled / sizeof settled[0])

/* As it was inherited. */
static struct {
	bool opened[STDERR_FILENO + 1]; /* was closed */
	struct sigaction actions[SETTLED];
	sigset_t mask;
	struct rlimit descriptors;
	bool has_limit;
} before;

/* open() takes the lowest number that is free. Without /dev/null to write to there is nothing that could be said,
 * either. */
static void open_standard_descriptors(void)
{
	int fd;

	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
		before.opened[fd] = true;
	if (fd < 0)
		_exit(EXIT_FAILURE);
	close(fd);
}

static void settle_signals(void)
{
	sigset_t set;

	for (unsigned i = 0; i < SETTLED; i++)
		sigaction(settled[i], NULL, &before.actions[i]);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond a limit shall fail, and be said */
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, &before.mask);
}

static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	before.descriptors = limit;
	before.has_limit = true;
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

void start_state_restore(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (before.opened[fd])
			close(fd);
	for (unsigned i = 0; i < SETTLED; i++)
		sigaction(settled[i], &before.actions[i], NULL);
	if (before.has_limit)
		setrlimit(RLIMIT_NOFILE, &before.descriptors);
	sigprocmask(SIG_SETMASK, &before.mask, NULL);
}
