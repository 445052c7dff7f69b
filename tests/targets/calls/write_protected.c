/* SPDX-License-Identifier: MIT */
/*
 * Takes checkpoints of its heap by write protection, as libraries for persistence and collectors with generations do:
 * all of it becomes read-only from time to time, and a SIGSEGV handler lets a page be written to that somebody writes
 * to, and counts it. Without the handler the first write ends the program.
 */
#include "victim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 1000
#define BYTES 3000
#define PAGE 4096ul

static char *start, *end;
static volatile long written;

static void let_it_be_written(int number, siginfo_t *info, void *context)
{
	char *page = (char *)((uintptr_t)info->si_addr & ~(PAGE - 1));

	(void)context;
	if (page < start || page >= end) {
		signal(number, SIG_DFL);
		return;
	}
	written++;
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = let_it_be_written, .sa_flags = SA_SIGINFO };
	const struct timespec pause = { .tv_nsec = 5000000 };
	static char *blocks[BLOCKS];
	uint64_t random = 5;

	victim_start("write_protected");
	for (unsigned i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(BYTES);
	start = (char *)((uintptr_t)blocks[0] & ~(PAGE - 1));
	end = (char *)((uintptr_t)sbrk(0) & ~(PAGE - 1));
	sigaction(SIGSEGV, &action, NULL);
	victim_ready();
	while (!victim_done()) {
		const long before = written;
		if (mprotect(start, (size_t)(end - start), PROT_READ))
			victim_wrong("mprotect");
		nanosleep(&pause, NULL);
		for (unsigned i = 0; i < 20; i++) {
			char **block = &blocks[victim_random(&random) % BLOCKS];
			free(*block);
			*block = malloc(BYTES);
			memset(*block, 1, BYTES);
		}
		if (written == before)
			victim_wrong("nobody wrote");
		victim_round();
	}
	return victim_report();
}
