/* SPDX-License-Identifier: MIT */
/*
 * Known amounts from known functions, after the line "go" on stdin: then it prints TRUTH and a JSON object, and keeps
 * the blocks until the line "end", when their contents are checked. The line "free" checks and frees them at once, then
 * prints FREED. It never allocates anything else.
 */
#include "victim.h"

#include <stdlib.h>
#include <string.h>

#define A_COUNT 1000
#define A_BYTES 4096
#define B_COUNT 50000
#define B_BYTES 100
#define C_COUNT 3
#define C_BYTES (8u << 20)
#define CHURN_COUNT 100000
#define CHURN_BYTES(i) (16u + (i) % 1000u)

static unsigned char *a_blocks[A_COUNT], *b_blocks[B_COUNT], *c_blocks[C_COUNT], *churn_blocks[64];

static void fill(unsigned char **slot, void *block, size_t bytes, unsigned i)
{
	if (!block) {
		victim_wrong("no memory for block %u", i);
		return;
	}
	*slot = block;
	memset(block, (int)(i % 251 + 1), bytes);
}

static VICTIM_FRAME void a(void)
{
	for (unsigned i = 0; i < A_COUNT; i++)
		fill(&a_blocks[i], malloc(A_BYTES), A_BYTES, i);
}

static VICTIM_FRAME void b(void)
{
	for (unsigned i = 0; i < B_COUNT; i++)
		fill(&b_blocks[i], malloc(B_BYTES), B_BYTES, i);
}

static VICTIM_FRAME void c(void)
{
	for (unsigned i = 0; i < C_COUNT; i++)
		fill(&c_blocks[i], malloc(C_BYTES), C_BYTES, i);
}

/* Always about 64 blocks at a time; all are freed at the end. */
static VICTIM_FRAME uint64_t churn(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < CHURN_COUNT; i++) {
		unsigned place = i % 64;
		free(churn_blocks[place]);
		fill(&churn_blocks[place], malloc(CHURN_BYTES(i)), CHURN_BYTES(i), i);
		bytes += CHURN_BYTES(i);
	}
	for (unsigned i = 0; i < 64; i++) {
		free(churn_blocks[i]);
		churn_blocks[i] = NULL;
	}
	return bytes;
}

static void check(unsigned char **blocks, unsigned count, size_t bytes, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		for (size_t k = 0; blocks[i] && k < bytes; k++)
			if (blocks[i][k] != i % 251 + 1) {
				victim_wrong("%s: block %u changed at %zu", name, i, k);
				return;
			}
	victim_round();
}

static void free_all(unsigned char **blocks, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		free(blocks[i]);
		blocks[i] = NULL;
	}
}

static void check_all(void)
{
	check(a_blocks, A_COUNT, A_BYTES, "a");
	check(b_blocks, B_COUNT, B_BYTES, "b");
	check(c_blocks, C_COUNT, C_BYTES, "c");
}

static void say_function(const char *name, uint64_t count, uint64_t bytes, uint64_t allocated_count,
                         uint64_t allocated_bytes, const char *prefix)
{
	victim_say("%s{\"function\":\"%s\",\"live_count\":%lu,\"live_bytes\":%lu,\"allocated_count\":%lu,"
	           "\"allocated_bytes\":%lu}",
	           prefix, name, count, bytes, allocated_count, allocated_bytes);
}

static VICTIM_FRAME void run(void)
{
	a();
	uint64_t churned = churn();
	b();
	c();
	churned += churn();
	say_function("a", A_COUNT, A_COUNT * A_BYTES, A_COUNT, A_COUNT * A_BYTES, "TRUTH ");
	say_function("b", B_COUNT, B_COUNT * B_BYTES, B_COUNT, B_COUNT * B_BYTES, "TRUTH ");
	say_function("c", C_COUNT, (uint64_t)C_COUNT * C_BYTES, C_COUNT, (uint64_t)C_COUNT * C_BYTES, "TRUTH ");
	say_function("churn", 0, 0, 2 * CHURN_COUNT, churned, "TRUTH ");
	victim_say("TRUTH-END");
}

int main(void)
{
	char line[32];

	victim_start("known_heap");
	victim_ready();
	bool ran = false;
	while (victim_line(line, sizeof line) && strcmp(line, "end")) {
		if (!ran && !strcmp(line, "go"))
			run();
		ran = true;
		if (!strcmp(line, "free")) {
			check_all();
			free_all(a_blocks, A_COUNT);
			free_all(b_blocks, B_COUNT);
			free_all(c_blocks, C_COUNT);
			victim_say("FREED");
		}
	}
	if (ran)
		check_all();
	else
		victim_round(); /* ended before it was asked to do anything */
	return victim_report();
}
