/* SPDX-License-Identifier: MIT */
/*
 * A process that lacks something, one mode each, while it allocates and checks:
 *
 *     locked [KIB]   all of its memory is locked, now and in the future; RLIMIT_MEMLOCK leaves it KIB more
 *     short MIB      RLIMIT_AS leaves it MIB more
 *     data MIB       RLIMIT_DATA does, and it takes half of that again and again
 *     maps COUNT     vm.max_map_count leaves it COUNT mappings more
 *     full COUNT     it can map nothing any more (RLIMIT_AS) as soon as it has COUNT mappings of memattach's, for a
 *                    while, and says FULL
 *     forks          it forks all the time, beside a thread that sleeps; children must have no descriptor of others
 *     stacks         threads with the smallest stacks, and a handler on the smallest signal stack
 */
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
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

static void take_data(const char *mib)
{
	const size_t bytes = strtoul(mib, NULL, 10) << 19;
	char *data = malloc(bytes);

	if (data)
		memset(data, 1, bytes);
	else
		victim_wrong("there is no data left");
	free(data);
}

static unsigned long number_in(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long number = 0;

	if (!file || fscanf(file, "%lu", &number) != 1)
		victim_say("CANNOT read %s", path);
	if (file)
		fclose(file);
	return number;
}

static unsigned long count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long count = 0;
	int c;

	while (maps && (c = getc(maps)) != EOF)
		count += c == '\n';
	if (maps)
		fclose(maps);
	return count;
}

/* Every second page of a reservation gets another protection, which makes two mappings more. */
static void take_mappings(unsigned long left)
{
	const unsigned long most = number_in("/proc/sys/vm/max_map_count"), have = count_mappings() + 2;
	const size_t pairs = most > have + left ? (most - have - left) / 2 : 0;
	char *at = mmap(NULL, (2 * pairs + 1) * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (most > 1u << 20 || at == MAP_FAILED)
		victim_say("CANNOT make so many mappings");
	for (size_t i = 0; i < pairs; i++)
		if (mprotect(at + (2 * i + 1) * 4096, 4096, PROT_READ))
			victim_say("CANNOT make a mapping");
}

static unsigned count_of_memattach(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned count = 0;
	char line[512];

	while (maps && fgets(line, sizeof line, maps))
		count += strstr(line, "memfd:memattach") != NULL;
	if (maps)
		fclose(maps);
	return count;
}

static void *fill_up(void *argument)
{
	const unsigned count = *(const unsigned *)argument;
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };

	while (count_of_memattach() < count)
		if (victim_done())
			return NULL;
	const struct rlimit all = { status_kib("VmSize:") * 1024, RLIM_INFINITY };
	setrlimit(RLIMIT_AS, &all);
	victim_say("FULL");
	usleep(100000);
	setrlimit(RLIMIT_AS, &none);
	return NULL;
}

static void *sleep_all_the_time(void *unused)
{
	while (!victim_done())
		usleep(10000);
	return unused;
}

static void look_at_child(void)
{
	const pid_t child = fork();
	int status = 0;

	if (child == 0) {
		for (int i = 3; i < 64; i++)
			if (fcntl(i, F_GETFD) >= 0)
				_exit(i);
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || status != 0)
		victim_wrong("a child has descriptor %d", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *number = argc > 2 ? argv[2] : NULL;
	uint64_t random = 31337, count = 0;
	unsigned mappings = number ? (unsigned)strtoul(number, NULL, 10) : 0;
	pthread_t other;

	victim_start("straits");
	if (!strcmp(mode, "locked"))
		locked(number);
	else if (!strcmp(mode, "short") && number)
		limit(RLIMIT_AS, "VmSize:", 1024 * strtoul(number, NULL, 10));
	else if (!strcmp(mode, "data") && number)
		limit(RLIMIT_DATA, "VmData:", 1024 * strtoul(number, NULL, 10));
	else if (!strcmp(mode, "maps") && number)
		take_mappings(strtoul(number, NULL, 10));
	else if (!strcmp(mode, "full") && number)
		pthread_create(&other, NULL, fill_up, &mappings);
	else if (!strcmp(mode, "forks"))
		pthread_create(&other, NULL, sleep_all_the_time, NULL);
	else if (!strcmp(mode, "stacks"))
		take_small_signal_stack();
	else
		return 64;
	victim_ready();
	while (!victim_done()) {
		if (!strcmp(mode, "stacks"))
			small_stacks(count++);
		if (!strcmp(mode, "forks"))
			look_at_child();
		if (!strcmp(mode, "data"))
			take_data(number);
		victim_block(&random);
		victim_round();
		usleep(100);
	}
	return victim_report();
}
