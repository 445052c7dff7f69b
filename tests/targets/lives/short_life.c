/* SPDX-License-Identifier: MIT */
/*
 * A program that memattach starts, and that is at its end soon: short_life [WAY]. It allocates 1000 blocks of 1000
 * bytes in main and frees 400 of them. Ways: "exit" (the default, status 7), "kill" (by SIGUSR2), "now" (nothing else),
 * "fork" (its child goes on, it ends with 5), "exec" (executes itself with "now"), "wait" (prints READY, then the
 * signals USR1 and INT that it gets, and ends with 3 on TERM), "state" (prints what it has inherited, and whether it
 * has gained rights).
 */
#include <dirent.h>
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

enum { BLOCKS = 1000, FREED = 400, BYTES = 1000 };

static void *blocks[BLOCKS];
static void *volatile early; /* by a constructor of the program: after its entry */

static __attribute__((constructor)) void begin(void)
{
	early = malloc(123456);
}

static __attribute__((noinline)) void allocate(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BYTES);
		if (blocks[i])
			memset(blocks[i], i, BYTES);
	}
	for (int i = 0; i < FREED; i++)
		free(blocks[i]);
}

static void wait_for_signals(void)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("READY\n");
	while (fflush(stdout) == 0 && sigwait(&set, &number) == 0 && number != SIGTERM)
		printf("SIGNAL %d\n", number);
	_exit(3);
}

static void print_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");

	for (struct dirent *entry; directory && (entry = readdir(directory));)
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
			printf("fd %s\n", entry->d_name);
	if (directory)
		closedir(directory);
}

/* The entry as the auxiliary vector on the stack has it, by which a program finds it, and as the kernel keeps it. */
static void print_entry(void)
{
	Elf64_auxv_t kept[64] = { 0 };
	FILE *f = fopen("/proc/self/auxv", "r");
	size_t n = f ? fread(kept, sizeof kept[0], 64, f) : 0;

	for (size_t i = 0; i < n; i++)
		if (kept[i].a_type == AT_ENTRY)
			printf("entry %s\n", kept[i].a_un.a_val == getauxval(AT_ENTRY) ? "kept" : "changed");
	if (f)
		fclose(f);
}

static void print_state(void)
{
	struct rlimit limit;
	struct sigaction action;
	struct itimerval alarm;
	sigset_t mask;
	const char *sockets = getenv("LISTEN_PID");

	getrlimit(RLIMIT_NOFILE, &limit);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	printf("descriptors %lu\n", (unsigned long)limit.rlim_cur);
	for (int i = 1; i < 32; i++) {
		if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
			printf("ignored %d\n", i);
		if (sigismember(&mask, i) == 1)
			printf("blocked %d\n", i);
	}
	printf("terminal %d rights %d\n", isatty(0), geteuid() != getuid());
	getitimer(ITIMER_REAL, &alarm);
	printf("alarm %d sockets %d\n", alarm.it_value.tv_sec != 0, sockets && atoi(sockets) == getpid());
	print_descriptors();
	print_entry();
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "exit";

	allocate();
	if (!strcmp(way, "kill"))
		raise(SIGUSR2);
	if (!strcmp(way, "fork") && fork() > 0)
		_exit(5);
	if (!strcmp(way, "fork"))
		usleep(300000);
	if (!strcmp(way, "exec"))
		execl("/proc/self/exe", argv[0], "now", (char *)NULL);
	if (!strcmp(way, "wait"))
		wait_for_signals();
	if (!strcmp(way, "state"))
		print_state();
	_exit(!strcmp(way, "now") || !strcmp(way, "state") ? 0 : 7);
}
