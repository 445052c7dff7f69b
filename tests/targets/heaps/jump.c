/* SPDX-License-Identifier: MIT */
/*
 * Allocates at a rate that the lines of stdin choose: "slow", "brisk" (twenty times as much for the same work), "fast"
 * (a hundred times), "idle". Of each batch one block in eight is kept. "sum" makes it idle and prints TRUTH lines with
 * the amounts so far; "end" checks what was kept.
 */
#include "victim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_ONE_IN 8
#define BATCH 128
#define WORK 400000         /* steps between two rounds */
#define KEPT_MAX (1u << 19) /* beyond, the oldest is given back */

enum mode { IDLE, SLOW, BRISK, FAST, END };

static const unsigned batches[] = { [SLOW] = 1, [BRISK] = 20, [FAST] = 100 };

static _Atomic enum mode wanted = IDLE, present = IDLE;
static unsigned char *kept[KEPT_MAX];
static uint64_t kept_count, kept_bytes, kept_ever_count, kept_ever_bytes, churn_count, churn_bytes;

static size_t bytes_of(const unsigned char *block)
{
	uint32_t bytes;

	memcpy(&bytes, block, sizeof bytes);
	return bytes;
}

static unsigned char *fill(unsigned char *block, size_t bytes)
{
	uint32_t word = (uint32_t)bytes;

	if (!block) {
		victim_wrong("no memory for %zu bytes", bytes);
		return NULL;
	}
	memset(block, (int)(bytes % 251 + 1), bytes);
	memcpy(block, &word, sizeof word);
	return block;
}

static void check(const unsigned char *block)
{
	size_t bytes = bytes_of(block);

	for (size_t i = sizeof(uint32_t); i < bytes; i++)
		if (block[i] != bytes % 251 + 1) {
			victim_wrong("a block of %zu bytes changed at %zu", bytes, i);
			return;
		}
}

static VICTIM_FRAME void keep(size_t bytes)
{
	unsigned char **place = &kept[kept_ever_count % KEPT_MAX];

	if (*place) {
		check(*place);
		kept_bytes -= bytes_of(*place);
		kept_count--;
		free(*place);
	}
	*place = fill(malloc(bytes), bytes);
	if (!*place)
		return;
	kept_count++;
	kept_bytes += bytes;
	kept_ever_count++;
	kept_ever_bytes += bytes;
}

static VICTIM_FRAME void churn(size_t bytes)
{
	unsigned char *block = fill(malloc(bytes), bytes);

	if (!block)
		return;
	check(block);
	free(block);
	churn_count++;
	churn_bytes += bytes;
}

static void batch(uint64_t *random)
{
	for (unsigned i = 0; i < BATCH; i++) {
		size_t bytes = 16 + victim_random(random) % 512;
		if (i % KEEP_ONE_IN == 0)
			keep(bytes);
		else
			churn(bytes);
	}
}

static void *run(void *argument)
{
	uint64_t random = 88172645463325252u;

	(void)argument;
	for (;;) {
		enum mode mode = wanted;
		if (present != mode)
			present = mode;
		if (mode == END)
			return NULL;
		for (unsigned i = 0; i < batches[mode]; i++)
			batch(&random);
		for (unsigned i = 0; i < WORK; i++)
			victim_random(&random);
		victim_round();
	}
}

static void change(enum mode mode)
{
	struct timespec step = { .tv_nsec = 1000000 };

	wanted = mode;
	while (present != mode)
		nanosleep(&step, NULL);
}

static void say_truth(const char *name, uint64_t live_count, uint64_t live_bytes, uint64_t count, uint64_t bytes)
{
	victim_say("TRUTH "
	           "{\"function\":\"%s\",\"live_count\":%lu,\"live_bytes\":%lu,\"allocated_count\":%lu,\"allocated_"
	           "bytes\":%lu}",
	           name, live_count, live_bytes, count, bytes);
}

int main(void)
{
	pthread_t thread;
	char line[32];

	victim_start("jump");
	if (pthread_create(&thread, NULL, run, NULL))
		return 2;
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end")) {
		if (!strcmp(line, "slow")) {
			change(SLOW);
		} else if (!strcmp(line, "brisk")) {
			change(BRISK);
		} else if (!strcmp(line, "fast")) {
			change(FAST);
		} else if (!strcmp(line, "idle") || !strcmp(line, "sum")) {
			change(IDLE);
		}
		if (!strcmp(line, "sum")) {
			say_truth("keep", kept_count, kept_bytes, kept_ever_count, kept_ever_bytes);
			say_truth("churn", 0, 0, churn_count, churn_bytes);
			victim_say("TRUTH-END");
		}
	}
	change(END);
	pthread_join(thread, NULL);
	for (uint64_t i = 0; i < KEPT_MAX; i++)
		if (kept[i])
			check(kept[i]);
	return victim_report();
}
