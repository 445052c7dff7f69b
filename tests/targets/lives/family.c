/* SPDX-License-Identifier: MIT */
/*
 * A process with children: family COUNT. At each line "more" of stdin it makes COUNT children, at "go" each of them
 * allocates 100 blocks of 1000 bytes and says DONE, at "exec" the first one executes this program as a child that waits
 * for a second "go"; at the end of stdin all end. Prints PID, READY and CHILD lines as victims do.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, BLOCKS = 100, BYTES = 1000 };

static void *blocks[BLOCKS];

static __attribute__((noinline)) void child_work(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BYTES);
		if (blocks[i])
			memset(blocks[i], i, BYTES);
	}
}

static _Noreturn void be_child(void)
{
	sigset_t set;
	int number;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("CHILD %d\n", getpid());
	fflush(stdout);
	while (sigwait(&set, &number) == 0) {
		if (number == SIGUSR2)
			execl("/proc/self/exe", "family", "child", (char *)NULL);
		child_work();
		printf("DONE %d\n", getpid());
		fflush(stdout);
	}
	_exit(1);
}

/* Blocked before the fork: none is lost. */
static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	pid_t children[MOST];
	int count = 0, many = argc > 1 ? atoi(argv[1]) : 1;
	char line[64];

	block_signals();
	if (argc > 1 && !strcmp(argv[1], "child"))
		be_child();
	printf("PID %d\nREADY\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		for (int i = 0; !strcmp(line, "more\n") && i < many && count < MOST; i++) {
			children[count] = fork();
			if (children[count++] == 0)
				be_child();
		}
		for (int i = 0; i < count; i++)
			if (!strcmp(line, "go\n") || (i == 0 && !strcmp(line, "exec\n")))
				kill(children[i], line[0] == 'g' ? SIGUSR1 : SIGUSR2);
	}
	for (int i = 0; i < count; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	printf("OK family\n");
	return 0;
}
