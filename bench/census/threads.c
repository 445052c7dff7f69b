/* SPDX-License-Identifier: MIT */
/*
 * A heap whose live blocks are known, for bench/census/truth: census_threads THREADS BLOCKS. Each thread makes so many
 * blocks of 1 to 400 bytes, one of 64 of up to 60 KB; two of three are freed by the next thread. Then all sleep. It
 * prints how many are live, and how many bytes can be used in them.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t threads, blocks;
static void **list;
static pthread_barrier_t barrier;

static void make(size_t thread)
{
	uint64_t random = thread + 1;

	for (size_t i = 0; i < blocks; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		const size_t bytes = 1 + (random >> 33) % (i % 64 ? 400 : 60000);
		list[thread * blocks + i] = malloc(bytes);
		if (!list[thread * blocks + i])
			abort();
		memset(list[thread * blocks + i], 1, bytes);
	}
}

static void *run(void *number)
{
	const size_t thread = (uintptr_t)number, other = (thread + 1) % threads;

	make(thread);
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < blocks; i++)
		if (i % 3) {
			free(list[other * blocks + i]);
			list[other * blocks + i] = NULL;
		}
	pthread_barrier_wait(&barrier);
	pause();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	pthread_t thread;
	size_t live = 0, bytes = 0;

	if (argc != 3)
		return 2;
	threads = strtoul(argv[1], NULL, 10);
	blocks = strtoul(argv[2], NULL, 10);
	list = calloc(threads * blocks, sizeof *list);
	pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 128 << 10);
	for (size_t i = 0; i < threads; i++)
		if (pthread_create(&thread, &attributes, run, (void *)(uintptr_t)i))
			abort();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < threads * blocks; i++) {
		live += list[i] != NULL;
		bytes += list[i] ? malloc_usable_size(list[i]) : 0;
	}
	printf("live %zu %zu\n", live + 1, bytes + malloc_usable_size(list));
	fflush(stdout);
	pause();
	return 0;
}
