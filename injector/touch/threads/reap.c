/* SPDX-License-Identifier: MIT */
#include "touch/threads/reap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>

#define FIRST_ROOM 64

/* The handler changes the list, too; it runs between reaper_start and reaper_stop alone. */
static pid_t *traced;
static size_t traced_count, traced_room;
static unsigned ended;

int reap_reserve(struct err *e)
{
	if (traced_count < traced_room)
		return 0;
	size_t room = traced_room ? 2 * traced_room : FIRST_ROOM;
	pid_t *list = realloc(traced, room * sizeof *list);
	if (!list)
		return err_set(e, ENOMEM, "out of memory");
	traced = list;
	traced_room = room;
	return 0;
}

void reap_add(pid_t tid)
{
	traced[traced_count++] = tid;
}

void reap_remove(pid_t tid)
{
	for (size_t i = traced_count; i-- > 0;)
		if (traced[i] == tid)
			traced[i] = traced[--traced_count];
}

unsigned reap_count(void)
{
	return ended;
}

/* A wait for the end of a thread takes its stops as well: first a look that takes nothing. */
static bool take_end(pid_t tid)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return errno == ECHILD; /* noticed already */
	if (info.si_pid == 0 || info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED)
		return false;
	ended++;
	return waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | __WALL) == 0;
}

void reap_ended(void)
{
	int error = errno;

	for (size_t i = traced_count; i-- > 0;)
		if (take_end(traced[i]))
			traced[i] = traced[--traced_count];
	errno = error;
}

static void child_says(int signal)
{
	(void)signal;
	reap_ended();
}

void reaper_start(struct reaper *r)
{
	const struct sigaction action = { .sa_handler = child_says, .sa_flags = SA_RESTART };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigaction(SIGCHLD, &action, &r->action);
	sigprocmask(SIG_BLOCK, &child, &r->blocked);
	/* Of those that ended before the signal still waits, unless it was not blocked. */
	if (!sigismember(&r->blocked, SIGCHLD))
		reap_ended();
	sigprocmask(SIG_UNBLOCK, &child, NULL);
}

void reaper_stop(const struct reaper *r)
{
	sigprocmask(SIG_SETMASK, &r->blocked, NULL);
	sigaction(SIGCHLD, &r->action, NULL);
}
