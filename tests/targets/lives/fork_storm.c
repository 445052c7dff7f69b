/* SPDX-License-Identifier: MIT */
/*
 * Forks all the time from a process whose other thread allocates. Each child allocates, checks, frees what it
 * inherited, and exits with a known code; every eighth child is made by vfork and execs /bin/true.
 */
#include "victim.h"

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define INHERITED 100
#define CHILD_OK 42

extern char **environ;
static unsigned char *inherited[INHERITED];

static void *allocate(void *argument)
{
	unsigned char fill = 0;

	(void)argument;
	while (!victim_done()) {
		unsigned char *volatile p = malloc(1000);
		if (!p)
			continue;
		memset(p, ++fill, 1000);
		if (p[0] != fill || p[999] != fill)
			victim_wrong("a block changed");
		free(p);
	}
	return NULL;
}

static int child(void)
{
	int wrong = 0;

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < INHERITED; i++) {
			size_t bytes = (size_t)(50 * i + 10);
			for (size_t k = 0; k < bytes; k++)
				wrong += inherited[i][k] != (unsigned char)(i + round);
			free(inherited[i]);
			inherited[i] = malloc(bytes);
			if (!inherited[i])
				return 1;
			memset(inherited[i], i + round + 1, bytes);
		}
	}
	return wrong ? 1 : CHILD_OK;
}

static pid_t start_child(unsigned round)
{
	if (round % 8 == 7) {
		char *argv[] = { (char *)"true", NULL };
		pid_t pid;
		errno = posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ);
		return errno ? -1 : pid;
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(child());
	return pid;
}

int main(void)
{
	pthread_t thread;

	victim_start("fork_storm");
	for (int i = 0; i < INHERITED; i++) {
		inherited[i] = malloc((size_t)(50 * i + 10));
		if (!inherited[i])
			return 2;
		memset(inherited[i], i, (size_t)(50 * i + 10));
	}
	if (pthread_create(&thread, NULL, allocate, NULL))
		return 2;
	victim_ready();
	for (unsigned round = 0; !victim_done(); round++) {
		int status = 0, expected = round % 8 == 7 ? 0 : CHILD_OK;
		pid_t pid = start_child(round);
		if (pid < 0) {
			victim_wrong("no child: %s", strerror(errno));
			continue;
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR && victim_done())
			;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
			victim_wrong("child %u ended with status 0x%x", round, (unsigned)status);
		victim_round();
	}
	pthread_join(thread, NULL);
	return victim_report();
}
