/* SPDX-License-Identifier: MIT */
/*
 * A victim with an allocator of its own linked in.
 *
 *     static_allocator sleep    its one thread sleeps
 *     static_allocator churn    six threads allocate all the time, others are made and end, and one asks the allocator
 *                               for figures or to give memory back, for which that takes all its locks
 *
 * It ends on SIGUSR1, or when it is told so in a line.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "victim.h"

#define WORKERS 6
#define BLOCKS 64u
#define BYTES_MAX 6000u

/* Of jemalloc and tcmalloc. */
extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));
extern void MallocExtension_ReleaseFreeMemory(void) __attribute__((weak));

static void churn(uint64_t *random, unsigned rounds)
{
	unsigned char *blocks[BLOCKS] = { 0 };
	size_t bytes[BLOCKS] = { 0 };

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t r = victim_random(random);
		unsigned k = r % BLOCKS;
		for (size_t at = 0; blocks[k] && at < bytes[k]; at += 512)
			if (blocks[k][at] != (unsigned char)bytes[k])
				victim_wrong("a block of %zu bytes holds something else", bytes[k]);
		free(blocks[k]);
		bytes[k] = 1 + (r >> 20) % BYTES_MAX;
		blocks[k] = malloc(bytes[k]);
		if (!blocks[k])
			victim_wrong("no memory");
		else
			memset(blocks[k], (unsigned char)bytes[k], bytes[k]);
	}
	for (unsigned k = 0; k < BLOCKS; k++)
		free(blocks[k]);
	victim_round();
}

static void *work(void *seed)
{
	uint64_t random = (uint64_t)(uintptr_t)seed;

	while (!victim_done())
		churn(&random, 20000);
	return NULL;
}

static void *once(void *seed)
{
	uint64_t random = (uint64_t)(uintptr_t)seed;

	churn(&random, 200);
	return NULL;
}

/* Makes threads that end, whose caches the allocator takes apart then. */
static void *make(void *unused)
{
	(void)unused;
	for (uintptr_t i = 1; !victim_done(); i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, once, (void *)(i * 7919)) != 0)
			victim_wrong("no thread");
		else
			pthread_join(thread, NULL);
	}
	return NULL;
}

static void *ask(void *unused)
{
	uint64_t epoch = 1;

	(void)unused;
	while (!victim_done()) {
		if (mallctl)
			mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
		if (MallocExtension_ReleaseFreeMemory)
			MallocExtension_ReleaseFreeMemory();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[WORKERS + 2];
	unsigned count = 0;
	char line[16];

	victim_start("static_allocator");
	if (argc > 1 && !strcmp(argv[1], "churn")) {
		for (; count < WORKERS; count++)
			pthread_create(&threads[count], NULL, work, (void *)(uintptr_t)(count + 1));
		pthread_create(&threads[count++], NULL, make, NULL);
		pthread_create(&threads[count++], NULL, ask, NULL);
	}
	victim_ready();
	if (count)
		victim_line(line, sizeof line);
	while (!count && !victim_done()) {
		free(malloc(100));
		usleep(20000);
		victim_round();
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return victim_report();
}
