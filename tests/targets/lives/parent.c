/* SPDX-License-Identifier: MIT */
/*
 * A parent that would notice if its child stopped or went on: it waits with WUNTRACED and WCONTINUED and counts
 * SIGCHLD. The child is what is attached to (CHILD pid); it computes until its parent ends.
 */
#include "victim.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_ulong notices;

static void on_child(int number)
{
	(void)number;
	atomic_fetch_add(&notices, 1);
}

static void compute(void)
{
	uint64_t random = 4711;

	signal(SIGUSR1, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		size_t bytes = 1 + victim_random(&random) % 2000;
		unsigned char *p = malloc(bytes);
		if (!p)
			_exit(1);
		memset(p, (int)bytes, bytes);
		if (p[bytes / 2] != (unsigned char)bytes)
			_exit(2);
		free(p);
		if (random % 512 == 0)
			usleep(100);
	}
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_child }; /* without SA_NOCLDSTOP */

	victim_start("parent");
	sigaction(SIGCHLD, &action, NULL);
	pid_t child = fork();
	if (child == 0)
		compute();
	victim_say("CHILD %d", (int)child);
	victim_ready();
	while (!victim_done()) {
		int status;
		pid_t pid = waitpid(child, &status, WUNTRACED | WCONTINUED);
		if (!victim_done())
			victim_wrong("waitpid returned %d, status %x, %s", (int)pid, pid > 0 ? (unsigned)status : 0,
			             pid < 0 ? strerror(errno) : "of the child");
		if (pid == child && (WIFEXITED(status) || WIFSIGNALED(status)))
			break;
		victim_round();
	}
	if (atomic_load(&notices))
		victim_wrong("%lu SIGCHLD came", atomic_load(&notices));
	kill(child, SIGKILL);
	return victim_report();
}
