/* SPDX-License-Identifier: MIT */
/* malloc of its own, with a lock that the program holds for long, as malloc_disable() of some allocators. One thread.
 */
#include "victim.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void __libc_free(void *block);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long calls;

static void count(void)
{
	pthread_mutex_lock(&lock);
	calls++;
	pthread_mutex_unlock(&lock);
}

void *malloc(size_t bytes)
{
	count();
	return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	count();
	return __libc_calloc(n, bytes);
}

void *realloc(void *block, size_t bytes)
{
	count();
	return __libc_realloc(block, bytes);
}

void free(void *block)
{
	__libc_free(block);
}

int main(void)
{
	const struct timespec t = { .tv_nsec = 20000000 };
	uint64_t random = 362436069;

	victim_start("locked_malloc");
	victim_ready();
	while (!victim_done()) {
		victim_block(&random);
		pthread_mutex_lock(&lock);
		unsigned long before = calls;
		for (int i = 0; i < 10; i++)
			nanosleep(&t, NULL);
		if (calls != before)
			victim_wrong("somebody has called malloc");
		pthread_mutex_unlock(&lock);
		victim_round();
	}
	return victim_report();
}
