/* SPDX-License-Identifier: MIT */
/*
 * A process that lacks something, one mode each, while it allocates and checks:
 *
 *     locked [KIB]   all of its memory is locked, now and in the future; RLIMIT_MEMLOCK leaves it KIB more
 *     short MIB      RLIMIT_AS leaves it MIB more
 *     stacks         threads with the smallest stacks, and a handler on the smallest signal stack
 */
#include "victim.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* A number of /proc/self/status, in KiB. */
static unsigned long status_kib(const char *name)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long value = 0;
	char line[256];

	while (status && fgets(line, sizeof line, status))
		if (!strncmp(line, name, strlen(name)))
			value = strtoul(line + strlen(name), NULL, 10);
	if (status)
		fclose(status);
	return value;
}

static void limit(int resource, const char *name, unsigned long more_kib)
{
	rlim_t bytes = ((rlim_t)status_kib(name) + more_kib) * 1024;
	struct rlimit both = { bytes, bytes };

	if (setrlimit(resource, &both))
		victim_say("CANNOT set a limit");
}

static void locked(const char *kib)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		victim_say("CANNOT lock memory");
	if (kib)
		limit(RLIMIT_MEMLOCK, "VmLck:", strtoul(kib, NULL, 10));
}

static void *small_thread(void *argument)
{
	uint64_t random = 1 + (uint64_t)(uintptr_t)argument;

	for (int i = 0; i < 50; i++) {
		void *volatile block = malloc(1 + victim_random(&random) % 3000);
		free(block);
	}
	return NULL;
}

static void on_signal(int signal_number)
{
	void *volatile block = malloc(100 + (size_t)signal_number);

	free(block);
}

/* One thread after the other, and a signal for each. */
static void small_stacks(uint64_t number)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	if (pthread_create(&thread, &attributes, small_thread, (void *)(uintptr_t)number))
		victim_wrong("no thread");
	else
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	raise(SIGUSR2);
}

static void take_small_signal_stack(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       bytes = ((size_t)sysconf(_SC_MINSIGSTKSZ) + 4096 + page - 1) / page * page;
	char *low = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = low + page, .ss_size = bytes };

	mprotect(low, page, PROT_NONE);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR2, &action, NULL);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *number = argc > 2 ? argv[2] : NULL;
	uint64_t random = 31337, count = 0;

	victim_start("straits");
	if (!strcmp(mode, "locked"))
		locked(number);
	else if (!strcmp(mode, "short") && number)
		limit(RLIMIT_AS, "VmSize:", 1024 * strtoul(number, NULL, 10));
	else if (!strcmp(mode, "stacks"))
		take_small_signal_stack();
	else
		return 64;
	victim_ready();
	while (!victim_done()) {
		if (!strcmp(mode, "stacks"))
			small_stacks(count++);
		victim_block(&random);
		victim_round();
		usleep(100);
	}
	return victim_report();
}
