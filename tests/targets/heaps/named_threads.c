/* SPDX-License-Identifier: MIT */
/*
 * Threads with names, each of which holds a known amount. "steady" and "early" have their names before anything is
 * attached. After the line "go" on stdin they allocate, "early" takes the name "renamed"; then the thread "newborn"
 * comes, allocates and stays, and one that allocates and ends at once. Then it prints TRUTH and a JSON object for each,
 * function being the last name of the thread, and keeps the blocks until the line "end". Each allocates when it is its
 * turn, so that a seed decides what is sampled.
 */
#include "victim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS_MAX 3000

struct keeper {
	const char *name;
	const char *last_name; /* NULL: stays as it is */
	unsigned count;
	size_t bytes;
	bool ends;
	pid_t tid;
	pthread_t thread;
	pthread_barrier_t turn; /* with main: named; may allocate; has allocated; may end */
	unsigned char *blocks[BLOCKS_MAX];
};

static struct keeper steady = { .name = "steady", .count = 2000, .bytes = 4000 };
static struct keeper early = { .name = "early", .last_name = "renamed", .count = 300, .bytes = 40000 };
static struct keeper newborn = { .name = "newborn", .count = 3000, .bytes = 2000 };
static struct keeper shortlived = { .name = "shortlived", .count = 1000, .bytes = 8000, .ends = true };

static VICTIM_FRAME void allocate(struct keeper *k)
{
	for (unsigned i = 0; i < k->count; i++) {
		k->blocks[i] = malloc(k->bytes);
		if (!k->blocks[i])
			victim_wrong("%s: no memory for block %u", k->name, i);
		else
			memset(k->blocks[i], (int)(i % 251 + 1), k->bytes);
	}
}

static void *keep(void *arg)
{
	struct keeper *k = arg;

	k->tid = gettid();
	pthread_setname_np(pthread_self(), k->name);
	pthread_barrier_wait(&k->turn);
	pthread_barrier_wait(&k->turn);
	if (k->last_name)
		pthread_setname_np(pthread_self(), k->last_name);
	allocate(k);
	pthread_barrier_wait(&k->turn);
	if (!k->ends)
		pthread_barrier_wait(&k->turn);
	return NULL;
}

static void begin(struct keeper *k)
{
	pthread_barrier_init(&k->turn, NULL, 2);
	if (pthread_create(&k->thread, NULL, keep, k))
		victim_wrong("no thread %s", k->name);
	pthread_barrier_wait(&k->turn);
}

static void let_allocate(struct keeper *k)
{
	pthread_barrier_wait(&k->turn);
	pthread_barrier_wait(&k->turn);
	if (k->ends)
		pthread_join(k->thread, NULL);
	victim_say("TRUTH {\"function\":\"%s\",\"tid\":%d,\"live_count\":%u,\"live_bytes\":%zu}",
	           k->last_name ? k->last_name : k->name, k->tid, k->count, k->count * k->bytes);
}

static void check(struct keeper *k)
{
	for (unsigned i = 0; i < k->count; i++)
		for (size_t at = 0; k->blocks[i] && at < k->bytes; at++)
			if (k->blocks[i][at] != i % 251 + 1) {
				victim_wrong("%s: block %u changed at %zu", k->name, i, at);
				return;
			}
	victim_round();
	if (k->ends)
		return;
	pthread_barrier_wait(&k->turn);
	pthread_join(k->thread, NULL);
}

static void run(void)
{
	let_allocate(&steady);
	let_allocate(&early);
	begin(&newborn);
	let_allocate(&newborn);
	begin(&shortlived);
	let_allocate(&shortlived);
	victim_say("TRUTH-END");
}

int main(void)
{
	char line[32];
	bool ran = false;

	victim_start("named_threads");
	begin(&steady);
	begin(&early);
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end"))
		if (!ran && !strcmp(line, "go")) {
			run();
			ran = true;
		}
	if (ran) {
		check(&steady);
		check(&early);
		check(&newborn);
		check(&shortlived);
	}
	return victim_report();
}
