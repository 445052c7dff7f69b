/* SPDX-License-Identifier: MIT */
/*
 * A hostile target: waits until the memory of the dump is mapped, and writes into it what memattach might believe.
 * Argument 1 says what:
 *
 *     count      the number of regions is huge
 *     offset     regions lie outside of the memory
 *     loop       the records of modules have no length, and a module goes
 *     arenas     arenas are filled far beyond their end
 *     counters   counters say that everything is live, or nothing
 *     scribble   random words into the header and the first page of each region, again and again
 */
#include "victim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump_format.h"

#define NOISE 300

static sigjmp_buf away;

/* The detach takes the mapping away while it is written to. */
static void gone(int signal)
{
	(void)signal;
	siglongjmp(away, 1);
}

/* The mapping that memattach has made, with a dump's magic. */
static struct dump_header *find_dump(void)
{
	char line[4096];
	void *found = NULL;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !found && fgets(line, sizeof line, f)) {
		unsigned long start, end;
		char mode[8];
		if (strstr(line, "dump") && sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && mode[1] == 'w')
			found = (void *)start;
	}
	if (f)
		fclose(f);
	return found && memcmp(((struct dump_header *)found)->magic, DUMP_MAGIC, sizeof DUMP_MAGIC - 1) == 0 ? found
	                                                                                                     : NULL;
}

static void *allocate(void *argument)
{
	void *keep[1000] = { 0 };

	(void)argument;
	for (unsigned i = 0; !victim_done(); i = (i + 1) % 1000) {
		free(keep[i]);
		keep[i] = malloc(5000);
		usleep(100);
	}
	return NULL;
}

static volatile uint64_t *word_of(struct dump_header *h, uint64_t offset)
{
	return (volatile uint64_t *)((char *)h + offset);
}

static void forge(struct dump_header *h, const char *what, const struct dump_region *regions, uint32_t count,
                  void *library)
{
	for (uint32_t i = 0; i < count; i++) {
		bool arena = regions[i].kind == DUMP_REGION_STACKS || regions[i].kind >= DUMP_REGION_MODULES;
		if (!strcmp(what, "offset"))
			((volatile struct dump_region *)h->regions)[i].offset = 0x4141414141410000ull;
		if (!strcmp(what, "arenas") && arena)
			*word_of(h, regions[i].offset) = UINT64_MAX - 64 * i;
		if (!strcmp(what, "loop") && regions[i].kind == DUMP_REGION_MODULES)
			*(volatile uint32_t *)word_of(h, regions[i].offset + sizeof(struct dump_arena)) = 0;
		for (unsigned k = 0; k < DUMP_COUNTER_COUNT && !strcmp(what, "counters"); k++)
			((volatile uint64_t *)h->counters[i % DUMP_COUNTER_SHARDS])[k] = i % 2 ? UINT64_MAX / 3 : 0;
	}
	if (!strcmp(what, "count"))
		*(volatile uint32_t *)&h->region_count = 0xfffffff0u;
	if (!strcmp(what, "loop") && library)
		dlclose(library);
}

/* All but the first words, by which this program finds the dump again. */
static void scribble(struct dump_header *h, const struct dump_region *regions, uint32_t count, uint64_t *random)
{
	for (unsigned i = 0; i < NOISE; i++) {
		uint64_t value = victim_random(random), which = victim_random(random) % (count + 1);
		uint64_t offset = which < count ? regions[which].offset : 16;
		*word_of(h, offset + victim_random(random) % 500 * 8) = victim_random(random) % 3 ? value
		                                                                                  : value & 0xffff;
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "scribble";
	static struct dump_region regions[DUMP_REGION_MAX];
	static uint64_t random = 88172645463325252ull;
	static uint32_t count;
	void *library = strcmp(what, "loop") ? NULL : dlopen("libm.so.6", RTLD_NOW);
	struct dump_header *volatile dump = NULL;
	pthread_t thread;

	if (argc > 2)
		random = strtoull(argv[2], NULL, 10) | 1;
	victim_start("evil");
	signal(SIGSEGV, gone);
	if (pthread_create(&thread, NULL, allocate, NULL) != 0)
		return 1;
	victim_ready();
	while (!victim_done()) {
		dump = find_dump();
		if (!dump) {
			usleep(1000);
			continue;
		}
		count = dump->region_count;
		count = count < DUMP_REGION_MAX ? count : 0;
		memcpy(regions, dump->regions, sizeof regions);
		usleep(10000);
		if (sigsetjmp(away, 1))
			continue;
		for (unsigned i = 0; i < 200 && !victim_done() && find_dump() == dump; i++) {
			if (strcmp(what, "scribble"))
				forge(dump, what, regions, count, library);
			else
				scribble(dump, regions, count, &random);
			library = NULL;
			victim_round();
			usleep(200);
		}
	}
	pthread_join(thread, NULL);
	return victim_report();
}
