/* SPDX-License-Identifier: MIT */
/* Has a thread of the kernel, which polls the queue of an io_uring: it never runs code of the program, wherever a
 * tracer sets its registers. */
#include "victim.h"

#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AN_HOUR_MS 3600000

int main(void)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = AN_HOUR_MS };

	/* Where the kernel refuses, there is no such thread: the test sees that. */
	if (syscall(SYS_io_uring_setup, 8, &params) < 0)
		perror("io_uring_setup");
	victim_start("io_uring_poller");
	victim_ready();
	while (!victim_done()) {
		/* Awake, so that a thread that waits, or seems to, would be the better one to borrow. */
		for (int i = 0; i < 10000; i++) {
			char *block = malloc(1000);
			if (!block) {
				victim_wrong("no memory");
				break;
			}
			memset(block, i, 1000);
			*(volatile char *)block = 1;
			free(block);
		}
		victim_round();
	}
	return victim_report();
}
