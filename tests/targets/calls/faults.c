/* SPDX-License-Identifier: MIT */
/*
 * Allocates, changes and frees blocks by every function, with faulty_malloc.c below, which refuses some requests; in
 * threads that end soon, so that their ids and control blocks are used again, and whose blocks the next ones go on
 * with. After the line "go" it works, prints what is alive (TRUTH, function change_block), and waits for the end of
 * stdin.
 */
#include "victim.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LANES 4u
#define BLOCKS 200u
#define THREADS_OF_A_LANE 100u
#define STEPS_OF_A_THREAD 400u

struct block {
	unsigned char *at;
	size_t bytes;
	bool mapped;
};

struct lane {
	struct block blocks[BLOCKS];
	uint64_t random;
	unsigned long refusals;
};

static struct lane lanes[LANES];
extern atomic_int faulty_armed __attribute__((weak));

static bool holds(const struct block *block, unsigned char mark)
{
	return !block->bytes || (block->at[0] == mark && block->at[block->bytes - 1] == mark);
}

static void mark(struct block *block, unsigned char value)
{
	if (block->bytes) {
		block->at[0] = value;
		block->at[block->bytes - 1] = value;
	}
}

static void *allocate(size_t bytes, unsigned how)
{
	void *block = (void *)1;

	switch (how) {
	case 0: return malloc(bytes);
	case 1: return calloc(1, bytes);
	case 2: return realloc(NULL, bytes);
	case 3: return aligned_alloc(64, bytes);
	default:
		if (posix_memalign(&block, 64, bytes) == 0)
			return block;
		if (block != (void *)1)
			victim_wrong("posix_memalign failed and wrote");
		return NULL;
	}
}

/* One change of one block. Named by the reports: not inlined, and nothing is inlined elsewhere. */
VICTIM_FRAME static void change_block(struct lane *lane, struct block *block, unsigned char value)
{
	uint64_t dice = victim_random(&lane->random);
	size_t bytes = 1 + dice / 64 % 2000;
	void *changed;

	if (block->at && !holds(block, value))
		victim_wrong("a block changed");
	errno = 4711;
	if (!block->at) {
		block->mapped = dice % 16 == 0;
		changed = block->mapped ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
		                        : allocate(bytes, dice / 16 % 5);
	} else if (dice % 3 == 0) {
		if (block->mapped)
			munmap(block->at, block->bytes);
		else
			free(block->at);
		block->at = NULL;
		block->bytes = 0;
		return;
	} else {
		changed = block->mapped ? mremap(block->at, block->bytes, bytes, MREMAP_MAYMOVE)
		                        : realloc(block->at, bytes);
	}
	if (!changed || changed == MAP_FAILED) {
		lane->refusals++;
		if (bytes % 8 != 5)
			victim_wrong("%zu bytes were refused", bytes);
		return;
	}
	if (errno != 4711)
		victim_wrong("errno changed to %d", errno);
	block->at = changed;
	block->bytes = bytes;
}

static void *short_thread(void *argument)
{
	struct lane *lane = argument;

	for (unsigned i = 0; i < STEPS_OF_A_THREAD; i++) {
		unsigned n = (unsigned)(victim_random(&lane->random) >> 20) % BLOCKS;

		change_block(lane, &lane->blocks[n], (unsigned char)(n + 1));
		mark(&lane->blocks[n], (unsigned char)(n + 1));
	}
	return NULL;
}

static void *run_lane(void *lane)
{
	pthread_t thread;

	for (unsigned i = 0; i < THREADS_OF_A_LANE; i++) {
		if (pthread_create(&thread, NULL, short_thread, lane)) {
			victim_wrong("no thread");
			return NULL;
		}
		pthread_join(thread, NULL);
		victim_round();
	}
	return NULL;
}

static void tell(void)
{
	unsigned long long bytes = 0, count = 0, refusals = 0;

	for (unsigned l = 0; l < LANES; l++) {
		refusals += lanes[l].refusals;
		for (unsigned i = 0; i < BLOCKS; i++) {
			count += lanes[l].blocks[i].at != NULL;
			bytes += lanes[l].blocks[i].bytes;
		}
	}
	if (!refusals)
		victim_wrong("nothing was refused");
	victim_say("TRUTH {\"function\": \"change_block\", \"live_bytes\": %llu, \"live_count\": %llu}", bytes, count);
	victim_say("TRUTH-END");
}

int main(void)
{
	pthread_t threads[LANES];
	char line[32];

	victim_start("faults");
	victim_ready();
	if (!&faulty_armed)
		victim_wrong("faulty_malloc is not there");
	if (&faulty_armed && victim_line(line, sizeof line) && !strcmp(line, "go")) {
		faulty_armed = 1;
		for (unsigned l = 0; l < LANES; l++) {
			lanes[l].random = 1234567 + l;
			pthread_create(&threads[l], NULL, run_lane, &lanes[l]);
		}
		for (unsigned l = 0; l < LANES; l++)
			pthread_join(threads[l], NULL);
		faulty_armed = 0;
		tell();
	}
	while (victim_line(line, sizeof line) && strcmp(line, "end"))
		;
	return victim_report();
}
