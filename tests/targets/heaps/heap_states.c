/* SPDX-License-Identifier: MIT */
/*
 * A heap whose state is known, for --census. heap_states WHAT:
 *
 *     mixed    live and freed blocks in the main arena, in that of a thread, and with mappings of their own; after
 *              "trim" on stdin malloc_trim(0) is called
 *     freed    many small blocks, all freed but for the last one, which keeps the heap from shrinking
 *     live     many blocks of one size, all live
 *     stacks   a hundred threads, each of which has used a part of its stack
 *     forged   after "go" all blocks are filled with what may be headers, chunks and lists; nothing is allocated any
 * more
 *
 * It prints TRUTH with its live blocks and what these have, headers included; "end" ends it.
 */
#include "victim.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL_COUNT 60000u
#define MAPPED_COUNT 6u
#define MAPPED_BYTES (1u << 20)
#define FREED_COUNT 200000u
#define FREED_BYTES 360u
#define LIVE_COUNT 600000u
#define LIVE_BYTES 104u
#define THREADS 100u
#define STACK_BYTES (1u << 20)
#define FORGED_COUNT 40000u
#define FORGED_BYTES 1000u

static void *blocks[LIVE_COUNT], *mapped[MAPPED_COUNT], *of_thread[SMALL_COUNT];
static uint64_t live_blocks, live_bytes;
static pthread_barrier_t filled;

static void *take(size_t bytes)
{
	unsigned char *block = malloc(bytes);

	if (!block) {
		victim_wrong("no memory");
		return NULL;
	}
	memset(block, 1, bytes);
	live_blocks++;
	live_bytes += malloc_usable_size(block) + 8;
	return block;
}

static void give(void **block)
{
	live_blocks--;
	live_bytes -= malloc_usable_size(*block) + 8;
	free(*block);
	*block = NULL;
}

/* Sizes from 24 to 2000 bytes; nine of ten are freed in the first half, so that whole pages are. */
static void fill(void **list, uint64_t seed)
{
	for (unsigned i = 0; i < SMALL_COUNT; i++)
		list[i] = take(24 + victim_random(&seed) % (i % 8 ? 200 : 2000));
	for (unsigned i = 0; i < SMALL_COUNT; i++)
		if (i < SMALL_COUNT / 2 ? i % 1000 >= 100 : i % 3 == 0)
			give(&list[i]);
}

static void *thread(void *unused)
{
	fill(of_thread, 3);
	pthread_barrier_wait(&filled);
	pause(); /* so that its tcache stays */
	return unused;
}

static void mix(void)
{
	pthread_t other;

	fill(blocks, 7);
	for (unsigned i = 0; i < MAPPED_COUNT; i++)
		mapped[i] = take(MAPPED_BYTES + 5000 * i);
	pthread_barrier_init(&filled, NULL, 2);
	if (pthread_create(&other, NULL, thread, NULL))
		victim_wrong("no thread");
	pthread_barrier_wait(&filled);
}

static void fill_many(unsigned count, size_t bytes, bool keep)
{
	for (unsigned i = 0; i < count; i++)
		blocks[i] = take(bytes);
	for (unsigned i = 0; !keep && i + 1 < count; i++)
		give(&blocks[i]);
}

static void *use_stack(void *unused)
{
	volatile char used[STACK_BYTES];

	for (size_t i = 0; i < sizeof used; i += 4096)
		used[i] = 1;
	pthread_barrier_wait(&filled);
	pause();
	return unused;
}

static void start_threads(void)
{
	pthread_barrier_init(&filled, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_t one;
		if (pthread_create(&one, NULL, use_stack, NULL))
			victim_wrong("no thread");
	}
	pthread_barrier_wait(&filled);
}

/* Words as a heap has them: small sizes with flags, addresses in it, multiples of pages. */
static uint64_t forged_word(uint64_t *random)
{
	const uint64_t r = victim_random(random);

	switch (r % 5) {
	case 0: return (r >> 8) % 5000;
	case 1: return (uint64_t)(uintptr_t)blocks[(r >> 8) % FORGED_COUNT] - (r >> 40) % 3 * 8;
	case 2: return (r >> 8) % 64 * 4096 + (r >> 30) % 8;
	case 3: return 0;
	default: return r;
	}
}

static void forge(void)
{
	uint64_t random = 11, *at = blocks[0], *end = (uint64_t *)((char *)blocks[FORGED_COUNT - 1] + FORGED_BYTES);

	while (at + 1 < end)
		*at++ = forged_word(&random);
}

static void begin(const char *what)
{
	if (!strcmp(what, "mixed"))
		mix();
	else if (!strcmp(what, "freed"))
		fill_many(FREED_COUNT, FREED_BYTES, false);
	else if (!strcmp(what, "live"))
		fill_many(LIVE_COUNT, LIVE_BYTES, true);
	else if (!strcmp(what, "stacks"))
		start_threads();
	else
		fill_many(FORGED_COUNT, FORGED_BYTES, true);
	victim_say("TRUTH {\"function\":\"heap\",\"live_blocks\":%llu,\"live_bytes\":%llu}",
	           (unsigned long long)live_blocks, (unsigned long long)live_bytes);
	victim_say("TRUTH-END");
}

int main(int argc, char **argv)
{
	char line[32];

	victim_start("heap_states");
	begin(argc > 1 ? argv[1] : "mixed");
	victim_round();
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end")) {
		if (!strcmp(line, "trim")) {
#ifdef __GLIBC__
			malloc_trim(0);
#endif
			victim_say("TRIMMED");
		} else if (!strcmp(line, "go")) {
			forge();
			victim_say("FORGED");
		}
		victim_round();
	}
	return victim_report();
}
