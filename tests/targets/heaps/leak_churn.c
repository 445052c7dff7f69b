/* SPDX-License-Identifier: MIT */
/*
 * Heavy churn on several stacks with lifetimes of different kinds, and a slow leak if argument 1 is "leak". Time is
 * counted in ticks of 1 ms of the clock, and a round that comes late makes up for it, so amounts do not depend on the
 * speed of the machine. Ends after SIGUSR1.
 */
#include "victim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_NS 1000000u
#define WHEEL 4096 /* ticks that a block can live at most */
#define EACH_TICK 12
#define LEAK_TICKS 2

struct block {
	struct block *next;
	size_t bytes;
};

static struct block *wheel[WHEEL]; /* what is to be freed at a tick */
static struct block *leaked;
static struct block *cache[256];
static uint64_t random_state = 88172645463325252u;

static struct block *fill(void *memory, size_t bytes)
{
	struct block *b = memory;

	if (!b) {
		victim_wrong("no memory for %zu bytes", bytes);
		exit(1);
	}
	memset(b, (int)(bytes % 251 + 1), bytes);
	b->bytes = bytes;
	return b;
}

static void give_back(struct block *b)
{
	const unsigned char *bytes = (const unsigned char *)b;

	for (size_t i = sizeof *b; i < b->bytes; i++)
		if (bytes[i] != b->bytes % 251 + 1) {
			victim_wrong("a block of %zu bytes changed at %zu", b->bytes, i);
			break;
		}
	free(b);
}

static double unit(void)
{
	return ((double)(victim_random(&random_state) >> 11) + 0.5) * 0x1p-53;
}

static void later(struct block *b, uint64_t now, double ticks)
{
	uint64_t at = now + (ticks < 1 ? 1 : ticks >= WHEEL ? WHEEL - 1 : (uint64_t)ticks);

	b->next = wheel[at % WHEEL];
	wheel[at % WHEEL] = b;
}

static size_t some_bytes(void)
{
	return 64 + victim_random(&random_state) % 2048;
}

static VICTIM_FRAME void serve_request(uint64_t now)
{
	size_t bytes = some_bytes();

	later(fill(malloc(bytes), bytes), now, 1 + 20 * unit());
}

static VICTIM_FRAME void keep_session(uint64_t now)
{
	size_t bytes = some_bytes();

	later(fill(malloc(bytes), bytes), now, -400 * log(unit()));
}

static VICTIM_FRAME void keep_job(uint64_t now)
{
	size_t bytes = some_bytes();

	later(fill(malloc(bytes), bytes), now, 10 * pow(unit(), -0.8));
}

static VICTIM_FRAME void cache_answer(void)
{
	size_t bytes = some_bytes();
	struct block **place = &cache[victim_random(&random_state) % 256];

	if (*place)
		give_back(*place);
	*place = fill(malloc(bytes), bytes);
}

static VICTIM_FRAME void remember_for_ever(void)
{
	size_t bytes = some_bytes();
	struct block *b = fill(malloc(bytes), bytes);

	b->next = leaked;
	leaked = b;
}

static void tick(uint64_t now, bool leaks)
{
	struct block *b = wheel[now % WHEEL];

	wheel[now % WHEEL] = NULL;
	while (b) {
		struct block *next = b->next;
		memset(&b->next, (int)(b->bytes % 251 + 1), sizeof b->next);
		give_back(b);
		b = next;
	}
	for (int i = 0; i < EACH_TICK; i++) {
		serve_request(now);
		keep_session(now);
		keep_job(now);
		cache_answer();
	}
	if (leaks && now % LEAK_TICKS == 0)
		remember_for_ever();
}

int main(int argc, char **argv)
{
	struct timespec pause = { .tv_nsec = TICK_NS };
	bool leaks = argc > 1 && !strcmp(argv[1], "leak");
	uint64_t now = 1;

	victim_start("leak_churn");
	if (argc > 2)
		random_state ^= strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15u;
	/* The churn is in its steady state before anybody attaches. */
	for (; now < WHEEL; now++)
		tick(now, false);
	victim_ready();
	for (uint64_t start = victim_monotonic_ns() - now * TICK_NS; !victim_done();) {
		for (; start + now * TICK_NS < victim_monotonic_ns(); now++)
			tick(now, leaks);
		victim_round();
		nanosleep(&pause, NULL);
	}
	return victim_report();
}
