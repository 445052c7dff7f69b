/* SPDX-License-Identifier: MIT */
/*
 * Frees that cannot be seen: the address of free is kept in a table in the heap from the start, as a plugin or a
 * program's own allocator keeps it. The argument says how many of 100 frees go through the table. After the line "go"
 * on stdin blocks come and go at the same addresses; then it prints TRUTH and a JSON object, and waits for the line
 * "end".
 */
#include "victim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 400000
#define HELD 256
#define BYTES(random) (200u + (random) % 3000u)

struct table {
	void *(*take)(size_t);
	void (*give)(void *);
};

static struct block {
	unsigned char *bytes;
	size_t size;
} blocks[HELD];

static uint64_t missed_bytes, freed_bytes;

static void check(const struct block *b)
{
	for (size_t i = 0; i < b->size; i += 64)
		if (b->bytes[i] != b->size % 251) {
			victim_wrong("a block changed");
			return;
		}
}

static VICTIM_FRAME void drop(struct block *b, const struct table *table, bool unseen)
{
	check(b);
	freed_bytes += b->size;
	missed_bytes += unseen ? b->size : 0;
	if (unseen)
		table->give(b->bytes);
	else
		free(b->bytes);
	b->bytes = NULL;
}

static VICTIM_FRAME void keep(struct block *b, uint64_t *random)
{
	b->size = BYTES(victim_random(random));
	b->bytes = malloc(b->size);
	if (b->bytes)
		memset(b->bytes, (int)(b->size % 251), b->size);
	else
		victim_wrong("no memory");
}

static void run(const struct table *table, unsigned unseen_of_100)
{
	uint64_t random = 88172645463325252u;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct block *b = &blocks[victim_random(&random) % HELD];
		if (b->bytes)
			drop(b, table, victim_random(&random) % 100 < unseen_of_100);
		keep(b, &random);
	}
	victim_round();
	victim_say("TRUTH {\"function\":\"keep\",\"missed_bytes\":%lu,\"freed_bytes\":%lu}", missed_bytes, freed_bytes);
	victim_say("TRUTH-END");
}

int main(int argc, char **argv)
{
	struct table *table = malloc(sizeof *table);
	char line[32];

	if (!table)
		return 1;
	/* Not read from the GOT: its own entries are only called through. */
	*(void **)&table->take = dlsym(RTLD_DEFAULT, "malloc");
	*(void **)&table->give = dlsym(RTLD_DEFAULT, "free");
	victim_start("held_free");
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end"))
		if (!strcmp(line, "go"))
			run(table, argc > 1 ? (unsigned)atoi(argv[1]) : 100);
	return victim_report();
}
