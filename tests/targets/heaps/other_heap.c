/* SPDX-License-Identifier: MIT */
/*
 * A heap of another allocator, which is preloaded, for --census: blocks of many sizes, a third of them freed by another
 * thread, one block that is large and not written to. It prints TRUTH with its live blocks, and with what the allocator
 * itself counts. "more": a thousand blocks more. "end" ends it.
 */
#include "victim.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 60000u
#define MORE 1000u
#define MORE_BYTES 1000u
#define UNTOUCHED (64u << 20)

typedef int (*mallctl_fn)(const char *, void *, size_t *, void *, size_t);

typedef int (*property_fn)(const char *, size_t *);

static void *blocks[COUNT + MORE + 1];

static void *free_some(void *context)
{
	for (unsigned i = 0; i < COUNT; i += 3) {
		free(blocks[i]);
		blocks[i] = NULL;
	}
	return context;
}

/* 1 to 500 bytes, one of 64 of up to 100 KiB; two of three stay. */
static void fill(void)
{
	uint64_t seed = 5;
	pthread_t other;

	for (unsigned i = 0; i < COUNT; i++) {
		const size_t bytes = 1 + victim_random(&seed) % (i % 64 ? 500 : 100000);
		blocks[i] = malloc(bytes);
		if (blocks[i])
			memset(blocks[i], 1, bytes);
		else
			victim_wrong("no memory");
	}
	blocks[COUNT + MORE] = malloc(UNTOUCHED);
	if (pthread_create(&other, NULL, free_some, NULL) || pthread_join(other, NULL))
		victim_wrong("no thread");
}

/* What jemalloc counts as allocated, its caches of threads emptied; 0: it is none. */
static uint64_t jemalloc_allocated(void)
{
	const mallctl_fn control = (mallctl_fn)dlsym(RTLD_DEFAULT, "mallctl");
	size_t allocated = 0, size = sizeof allocated;
	uint64_t epoch = 1;

	if (!control)
		return 0;
	control("thread.tcache.flush", NULL, NULL, NULL, 0);
	control("epoch", NULL, NULL, &epoch, sizeof epoch);
	control("stats.allocated", &allocated, &size, NULL, 0);
	return allocated;
}

/* What tcmalloc counts; 0: it is none. */
static uint64_t tcmalloc_allocated(void)
{
	const property_fn get = (property_fn)dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
	size_t allocated = 0;

	if (get)
		get("generic.current_allocated_bytes", &allocated);
	return allocated;
}

static void tell(void)
{
	const uint64_t by_jemalloc = jemalloc_allocated(), counted = by_jemalloc ? by_jemalloc : tcmalloc_allocated();
	uint64_t live = 0, bytes = 0;

	for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++) {
		live += blocks[i] != NULL;
		bytes += blocks[i] ? malloc_usable_size(blocks[i]) : 0;
	}
	victim_say("TRUTH {\"live_blocks\":%llu,\"live_bytes\":%llu,\"counted\":%llu}", (unsigned long long)live,
	           (unsigned long long)bytes, (unsigned long long)counted);
}

int main(void)
{
	char line[32];

	victim_start("other_heap");
	fill();
	victim_round();
	tell();
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end")) {
		for (unsigned i = 0; i < MORE && !blocks[COUNT + i]; i++)
			blocks[COUNT + i] = malloc(MORE_BYTES);
		victim_round();
		victim_say("MADE");
	}
	return victim_report();
}
