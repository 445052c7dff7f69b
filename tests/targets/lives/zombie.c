/* SPDX-License-Identifier: MIT */
/* Prints the pid of a child that has ended and is not waited for. */
#include "victim.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	victim_start("zombie");
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	siginfo_t info;
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	victim_say("ZOMBIE %d", (int)child);
	victim_ready();
	while (!victim_done())
		pause();
	victim_round();
	waitpid(child, NULL, 0);
	return victim_report();
}
