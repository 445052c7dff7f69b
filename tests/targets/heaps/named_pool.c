/* SPDX-License-Identifier: MIT */
/*
 * A program with a pool of its own over malloc: pool_get(pool, size) and pool_put(block), which no one knows to be
 * allocation functions. After the line "go" on stdin; then it prints TRUTH and a JSON object, and waits for the line
 * "end".
 */
#include "victim.h"

#include <stdlib.h>
#include <string.h>

#define SLAB_BYTES (64u << 10)
#define BLOCK_BYTES 256u
#define ROUNDS 20000u
#define HELD 1000u

struct block {
	struct block *next;
};

struct pool {
	struct block *unused;
	unsigned gets;
};

static struct pool pool;

VICTIM_FRAME void *pool_get(struct pool *p, size_t bytes);
VICTIM_FRAME void pool_put(void *block);

static VICTIM_FRAME void refill(struct pool *p)
{
	unsigned char *slab = malloc(SLAB_BYTES);

	for (unsigned at = 0; slab && at < SLAB_BYTES; at += BLOCK_BYTES) {
		struct block *b = (struct block *)(slab + at);
		b->next = p->unused;
		p->unused = b;
	}
}

void *pool_get(struct pool *p, size_t bytes)
{
	if (!p->unused)
		refill(p);
	if (!p->unused || bytes > BLOCK_BYTES)
		return NULL;
	struct block *b = p->unused;
	p->unused = b->next;
	p->gets++;
	return b;
}

void pool_put(void *block)
{
	struct block *b = block;

	if (!b)
		return;
	b->next = pool.unused;
	pool.unused = b;
}

static VICTIM_FRAME void serve(void)
{
	static unsigned char *held[HELD];
	static size_t sizes[HELD];
	uint64_t allocated = 0, live = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned k = i % HELD;
		if (held[k] && held[k][sizes[k] - 1] != k % 251)
			victim_wrong("block %u changed", k);
		pool_put(held[k]);
		sizes[k] = 16 + i % 200;
		held[k] = pool_get(&pool, sizes[k]);
		if (!held[k])
			victim_wrong("no block");
		else
			memset(held[k], (int)(k % 251), sizes[k]);
		allocated += sizes[k];
	}
	for (unsigned k = 0; k < HELD; k++)
		live += sizes[k];
	victim_say("TRUTH {\"function\":\"serve\",\"live_count\":%u,\"live_bytes\":%llu,\"allocated_count\":%u,"
	           "\"allocated_bytes\":%llu}",
	           HELD, (unsigned long long)live, ROUNDS, (unsigned long long)allocated);
}

int main(void)
{
	char line[64];

	victim_start("named_pool");
	victim_ready();
	victim_line(line, sizeof line);
	serve();
	victim_say("TRUTH-END");
	victim_line(line, sizeof line);
	victim_round();
	return victim_report();
}
