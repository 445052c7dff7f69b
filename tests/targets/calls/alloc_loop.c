/* SPDX-License-Identifier: MIT */
/*
 * A malloc storm: four threads (or argument 1) allocate by every function of the C API, fill each block, and check its
 * contents and alignment before they free or resize it. Every 64th block is freed by another thread. With argument 2,
 * "any-errno", a successful allocation may change errno, as the standard has it: glibc's does not, and ours must not.
 * With argument 1, "calm", the four threads sleep between rounds: a heap at work that leaves the processors to others.
 */
#include "victim.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES 256
#define THREADS_MAX 64
#define CALM_US 10000

struct block {
	unsigned char *p;
	size_t bytes;
	unsigned char fill;
};

/* A block on its way to another thread; its first bytes hold its own size. */
static _Atomic(uint64_t *) handed_over[THREADS_MAX];

static bool any_errno, calm;

static void check(const struct block *b)
{
	for (size_t i = 0; i < b->bytes; i++)
		if (b->p[i] != b->fill) {
			victim_wrong("block %p of %zu bytes changed at %zu", (void *)b->p, b->bytes, i);
			return;
		}
}

static void *allocate(unsigned how, size_t bytes)
{
	void *p = NULL;
	size_t alignment = 16;

	errno = 77;
	switch (how % 6) {
	case 0:
		p = calloc(1, bytes);
		for (size_t i = 0; p && i < bytes; i++)
			if (((unsigned char *)p)[i]) {
				victim_wrong("calloc: not zero at %zu", i);
				break;
			}
		break;
	case 1:
		alignment = 64;
		if (posix_memalign(&p, alignment, bytes))
			p = NULL;
		break;
	case 2:
		alignment = 256;
		p = aligned_alloc(alignment, (bytes + 255) & ~(size_t)255);
		break;
	default: p = malloc(bytes);
	}
	if (!p)
		victim_wrong("no memory for %zu bytes", bytes);
	else if ((uintptr_t)p % alignment)
		victim_wrong("%p is not aligned to %zu", p, alignment);
	if (errno != 77 && !any_errno)
		victim_wrong("errno changed to %d by a successful allocation", errno);
	return p;
}

static void renew(struct block *b, uint64_t *random)
{
	uint64_t r = victim_random(random);
	size_t bytes = 1 + r % 500;

	if (r % 97 == 0)
		bytes *= 40;
	if (b->p)
		check(b);
	if (b->p && r % 5 == 0) {
		size_t kept = b->bytes < bytes ? b->bytes : bytes;
		unsigned char *p = realloc(b->p, bytes);
		if (!p) {
			victim_wrong("realloc to %zu bytes failed", bytes);
			return;
		}
		b->p = p;
		b->bytes = kept;
		check(b);
	} else {
		free(b->p);
		b->p = allocate((unsigned)(r >> 32), bytes);
	}
	b->bytes = b->p ? bytes : 0;
	b->fill = (unsigned char)(r >> 40);
	if (b->p)
		memset(b->p, b->fill, bytes);
}

static void hand_over(unsigned from, uint64_t *random)
{
	size_t words = 2 + victim_random(random) % 100;
	uint64_t *block = malloc(words * sizeof *block);

	if (!block)
		return;
	for (size_t i = 0; i < words; i++)
		block[i] = words;
	uint64_t *old = atomic_exchange(&handed_over[from], block);
	if (!old)
		return;
	for (size_t i = 0, n = old[0]; i < n; i++)
		if (old[i] != n) {
			victim_wrong("a block of another thread changed");
			break;
		}
	free(old);
}

static unsigned thread_count = 4;

static void *loop(void *argument)
{
	unsigned self = (unsigned)(uintptr_t)argument;
	uint64_t random = 88172645463325252u + self;
	static struct block blocks[THREADS_MAX][PLACES];
	struct block *mine = blocks[self];

	while (!victim_done()) {
		for (unsigned i = 0; i < 1000; i++)
			renew(&mine[victim_random(&random) % PLACES], &random);
		for (unsigned i = 0; i < 16; i++)
			hand_over((unsigned)(victim_random(&random) % thread_count), &random);
		victim_round();
		if (calm)
			usleep(CALM_US);
	}
	for (unsigned i = 0; i < PLACES; i++) {
		if (mine[i].p)
			check(&mine[i]);
		free(mine[i].p);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];

	victim_start("alloc_loop");
	calm = argc > 1 && !strcmp(argv[1], "calm");
	if (argc > 1 && !calm)
		thread_count = (unsigned)atoi(argv[1]);
	any_errno = argc > 2 && !strcmp(argv[2], "any-errno");
	if (thread_count < 1 || thread_count > THREADS_MAX)
		return 2;
	for (uintptr_t i = 0; i < thread_count; i++)
		if (pthread_create(&threads[i], NULL, loop, (void *)i))
			return 2;
	victim_ready();
	for (unsigned i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	return victim_report();
}
