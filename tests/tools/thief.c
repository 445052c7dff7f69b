/* SPDX-License-Identifier: MIT */
/*
 * thief UID PID: as that user, tries to take over each child of process PID as long as it lives: its descriptors, its
 * memory, itself. Says each success, and at the end how many times it tried.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS 64

static void say(const char *what, int child)
{
	printf("TAKEN %s of %d\n", what, child);
	fflush(stdout);
}

static void take_descriptors(int child)
{
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);

	for (int fd = 0; pidfd >= 0 && fd < NUMBERS; fd++) {
		int got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
		if (got < 0 && errno == EPERM)
			break;
		if (got < 0)
			continue;
		char link[40], path[200] = "";
		snprintf(link, sizeof link, "/proc/self/fd/%d", got);
		if (readlink(link, path, sizeof path - 1) > 0)
			say(path, child);
		close(got);
	}
	if (pidfd >= 0)
		close(pidfd);
}

static void take_over(int child)
{
	char path[40];

	take_descriptors(child);
	snprintf(path, sizeof path, "/proc/%d/mem", child);
	int memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory >= 0)
		say("memory", child);
	close(memory);
	if (kill(child, SIGWINCH) == 0)
		say("signals", child);
	if (ptrace(PTRACE_SEIZE, child, 0, 0) == 0) {
		say("control", child);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	unsigned long tries = 0;
	char path[60], text[4000];

	if (argc != 3)
		return 2;
	uid_t uid = (uid_t)atoi(argv[1]);
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", atoi(argv[2]), atoi(argv[2]));
	if (setgroups(0, NULL) || setgid(uid) || setuid(uid))
		return 2;
	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
		if (fd >= 0)
			close(fd);
		if (n < 0)
			break;
		text[n] = 0;
		for (char *t = strtok(text, " "); t; t = strtok(NULL, " "), tries++)
			take_over(atoi(t));
		if (!n)
			usleep(200);
	}
	printf("%lu tries\n", tries);
	return 0;
}
