/* SPDX-License-Identifier: MIT */
#include "sandbox/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LOOK_MS 100
#define GONE_MS 1000 /* for one that was killed */
#define SIGNALLED 128

pid_t child_start(int end_signal)
{
	pid_t parent = getpid(), child = fork();

	if (child == 0 && end_signal) {
		child_ends_with_parent(end_signal);
		if (getppid() != parent)
			_exit(SIGNALLED + end_signal);
	}
	return child;
}

void child_ends_with_parent(int end_signal)
{
	prctl(PR_SET_PDEATHSIG, end_signal);
}

static bool has_ended(pid_t child)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ? errno == ECHILD
	                                                                          : info.si_pid == child;
}

/* Without a pidfd (Linux before 5.3, or a filter forbids it) it is looked for each millisecond. */
bool child_ends_within(pid_t child, int ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	if (pidfd >= 0)
		return poll(&end, 1, ms) > 0;
	while (!has_ended(child) && ms-- > 0)
		nanosleep(&pause, NULL);
	return has_ended(child);
}

void child_end(pid_t child)
{
	kill(child, SIGKILL);
	child_ends_within(child, GONE_MS);
	waitpid(child, NULL, WNOHANG);
}

int child_wait(pid_t child)
{
	int status;
	pid_t ended;

	while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
		;
	return ended == child ? status : -1;
}

int child_await(pid_t child, bool (*goes_on)(void *context), void *context, struct rusage *used)
{
	bool lives = true, killed = false;
	int status;

	while (lives && !killed) {
		lives = !child_ends_within(child, LOOK_MS);
		if (lives && !goes_on(context)) {
			kill(child, SIGKILL);
			child_ends_within(child, GONE_MS);
			killed = true;
		}
	}
	return wait4(child, &status, WNOHANG, used) == child ? status : -1;
}
