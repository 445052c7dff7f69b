/* SPDX-License-Identifier: MIT */
/* Blocks all signals when it is told to, by SIGUSR2: also those that the C library keeps for itself. No thread of
 * memattach does that to it. */
#include "victim.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t told;

static void tell(int number)
{
	(void)number;
	told = 1;
}

int main(void)
{
	const uint64_t all = UINT64_MAX;

	signal(SIGUSR2, tell);
	victim_start("raw_mask");
	victim_ready();
	while (!victim_done()) {
		char *block = malloc(1000);
		if (!block) {
			victim_wrong("no memory");
			break;
		}
		*(volatile char *)block = 1;
		usleep(1000);
		free(block);
		if (told)
			syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
		victim_round();
	}
	return victim_report();
}
