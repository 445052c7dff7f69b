/* SPDX-License-Identifier: MIT */
/*
 * Copies the addresses of malloc and free into a structure when the line "capture" comes, as plugins do, and calls them
 * through the copy until it ends. During a session the copies are addresses of hooks: they must work for ever.
 */
#include "victim.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct allocator {
	void *(*allocate)(size_t);
	void (*release)(void *);
};
static struct allocator captured;
static atomic_bool ready;

static VICTIM_FRAME void capture(void)
{
	captured.allocate = malloc;
	captured.release = free;
	atomic_store_explicit(&ready, true, memory_order_release);
}

static void *use(void *argument)
{
	uint64_t random = 521288629;

	(void)argument;
	while (!victim_done()) {
		if (!atomic_load_explicit(&ready, memory_order_acquire)) {
			victim_round();
			continue;
		}
		size_t bytes = 1 + victim_random(&random) % 2000;
		unsigned char *p = captured.allocate(bytes);
		if (!p) {
			victim_wrong("no memory");
			continue;
		}
		memset(p, 0xa5, bytes);
		if (p[0] != 0xa5 || p[bytes - 1] != 0xa5)
			victim_wrong("a block changed");
		captured.release(p);
		victim_round();
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	char line[32];

	victim_start("escape");
	if (pthread_create(&thread, NULL, use, NULL))
		return 2;
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end"))
		if (!strcmp(line, "capture")) {
			capture();
			victim_say("CAPTURED");
		}
	raise(SIGUSR1);
	pthread_join(thread, NULL);
	return victim_report();
}
