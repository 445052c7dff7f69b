/* SPDX-License-Identifier: MIT */
/*
 * moved_code: a round of malloc and free at a time. At SIGUSR2 it holds the lock of the loader, as a program does that
 * walks its libraries, until the code of malloc is again as it was at the start, and for a third of a second more. Then
 * it moves the code of its C library into anonymous memory, as programs do that want huge pages for their code, says
 * MOVED, and goes on.
 */
#include "victim.h"

#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CODE_BYTES 32

static unsigned char before[CODE_BYTES];
static volatile sig_atomic_t asked;

static void ask(int signal)
{
	(void)signal;
	asked = 1;
}

static struct code {
	void *start, *copy;
	size_t bytes;
} code;

/* A copy of the code around an address, before anybody has changed it. */
static void copy_code_with(uint64_t address)
{
	unsigned long start, end;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= address && address < end)
			code = (struct code){ .start = (void *)start, .bytes = end - start };
	if (f)
		fclose(f);
	code.copy = mmap(NULL, code.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code.copy, code.start, code.bytes);
	mprotect(code.copy, code.bytes, PROT_READ | PROT_EXEC);
}

static void move_code(void)
{
	if (mremap(code.copy, code.bytes, code.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, code.start) != code.start)
		victim_wrong("the code could not be moved");
	victim_say("MOVED");
}

static int in_the_loader(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	const struct timespec moment = { .tv_nsec = 1000000 }, more = { .tv_nsec = 300000000 };

	(void)info, (void)bytes, (void)unused;
	while (memcmp(before, (const void *)malloc, sizeof before) != 0)
		nanosleep(&moment, NULL);
	nanosleep(&more, NULL);
	move_code();
	return 1;
}

int main(void)
{
	uint64_t random = 1;

	signal(SIGUSR2, ask);
	victim_start("moved_code");
	memcpy(before, (const void *)malloc, sizeof before);
	copy_code_with((uint64_t)malloc);
	victim_ready();
	while (!victim_done()) {
		victim_block(&random);
		victim_round();
		if (asked) {
			asked = 0;
			dl_iterate_phdr(in_the_loader, NULL);
		}
	}
	return victim_report();
}
