/* SPDX-License-Identifier: MIT */
/*
 * Threads are born and end all the time; each allocates, its parent checks and frees. With the argument main-exits the
 * first thread leaves by pthread_exit at once: /proc/PID then looks like a zombie's although the process is well.
 */
#include "victim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPAWNERS 3
#define BLOCKS 20

struct gift {
	unsigned char *blocks[BLOCKS];
	size_t bytes[BLOCKS];
	unsigned char fill;
};

static void *give(void *argument)
{
	struct gift *gift = argument;
	uint64_t random = (uint64_t)gift->fill * 2654435761u + 1;

	for (int i = 0; i < BLOCKS; i++) {
		gift->bytes[i] = 1 + victim_random(&random) % 4000;
		gift->blocks[i] = malloc(gift->bytes[i]);
		if (gift->blocks[i])
			memset(gift->blocks[i], gift->fill, gift->bytes[i]);
	}
	return gift;
}

static void *spawn(void *argument)
{
	unsigned char fill = (unsigned char)(uintptr_t)argument;

	while (!victim_done()) {
		struct gift gift = { .fill = ++fill };
		pthread_t thread;
		void *result = NULL;
		if (pthread_create(&thread, NULL, give, &gift)) {
			victim_wrong("no thread");
			continue;
		}
		pthread_join(thread, &result);
		if (result != &gift)
			victim_wrong("a thread returned %p", result);
		for (int i = 0; i < BLOCKS; i++) {
			for (size_t k = 0; gift.blocks[i] && k < gift.bytes[i]; k++)
				if (gift.blocks[i][k] != fill) {
					victim_wrong("a block of an ended thread changed");
					break;
				}
			free(gift.blocks[i]);
		}
		victim_round();
	}
	return NULL;
}

static pthread_t spawners[SPAWNERS];

static void *last(void *argument)
{
	(void)argument;
	for (int i = 0; i < SPAWNERS; i++)
		pthread_join(spawners[i], NULL);
	exit(victim_report());
}

int main(int argc, char **argv)
{
	pthread_t thread;

	victim_start("thread_churn");
	for (uintptr_t i = 0; i < SPAWNERS; i++)
		if (pthread_create(&spawners[i], NULL, spawn, (void *)(i * 50)))
			return 2;
	if (pthread_create(&thread, NULL, last, NULL))
		return 2;
	victim_ready();
	if (argc > 1 && !strcmp(argv[1], "main-exits"))
		pthread_exit(NULL);
	pthread_join(thread, NULL);
	return 2;
}
