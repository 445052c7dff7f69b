/* SPDX-License-Identifier: MIT */
/*
 * changed_code MODE LIBRARY: allocates by the pool of the library (pool_plugin.c), whose code is
 *
 *     plain       as the loader has mapped it
 *     shared      a shared mapping of its file
 *     anonymous   a copy in anonymous memory, as programs make that want huge pages for their code
 *     huge        the same, in a huge page that the kernel makes; the library has its code at a multiple of 2 MiB
 *     hugetlb     the same, in a huge page that the administrator has set aside
 *
 * It says "POOL take give spare", addresses. The line "unload" makes it unload the library and go on with malloc.
 */
#include "victim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static void *(*take)(size_t);
static void (*give)(void *);
static volatile int unload;

/* The addresses of malloc and free themselves are not copied. */
static void *own_take(size_t bytes)
{
	return malloc(bytes);
}

static void own_give(void *block)
{
	free(block);
}

#define HUGE_BYTES (2ul << 20)

/* What lies between the end of the code and that of its huge page is padding. */
static void remap_huge(const char *mode, void *code, size_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | (strcmp(mode, "hugetlb") == 0 ? MAP_HUGETLB : 0);
	void *copy = malloc(bytes);

	memcpy(copy, code, bytes);
	if ((uintptr_t)code % HUGE_BYTES || bytes > HUGE_BYTES ||
	    mmap(code, HUGE_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) != code) {
		victim_say("CANNOT make a huge page there");
		victim_ready();
		_exit(0);
	}
	madvise(code, HUGE_BYTES, MADV_HUGEPAGE);
	memcpy(code, copy, bytes);
	mprotect(code, HUGE_BYTES, PROT_READ | PROT_EXEC);
	free(copy);
}

static void remap(const char *mode, const char *path, uint64_t start, uint64_t end, uint64_t offset)
{
	if (!strncmp(mode, "huge", 4)) {
		remap_huge(mode, (void *)start, end - start);
		return;
	}

	size_t bytes = end - start;
	int fd = open(path, O_RDONLY);
	void *place;

	if (!strcmp(mode, "shared")) {
		place = mmap((void *)start, bytes, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
	} else {
		void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(copy, (void *)start, bytes);
		mprotect(copy, bytes, PROT_READ | PROT_EXEC);
		place = mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start);
		madvise((void *)start, bytes, MADV_COLLAPSE); /* where it can be */
	}
	if (fd < 0 || place != (void *)start)
		victim_wrong("the code could not be mapped again");
	close(fd);
}

static void remap_code(const char *mode, const char *path)
{
	unsigned long start, end, offset;
	char line[512], protection[8];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, protection, &offset) == 4 && protection[2] == 'x' &&
		    strstr(line, path)) {
			remap(mode, path, start, end, offset);
			break;
		}
	if (f)
		fclose(f);
}

static void *listen_for(void *unused)
{
	char line[64];

	(void)unused;
	while (victim_line(line, sizeof line))
		if (!strcmp(line, "unload"))
			unload = 1;
	return NULL;
}

static void churn(void)
{
	unsigned char *blocks[16];

	for (unsigned i = 0; i < 2000; i++) {
		for (unsigned k = 0; k < 16; k++) {
			blocks[k] = take(20 + k);
			memset(blocks[k], (int)k, 20 + k);
		}
		for (unsigned k = 0; k < 16; k++) {
			if (blocks[k][19 + k] != k)
				victim_wrong("block %u changed", k);
			give(blocks[k]);
		}
	}
	usleep(1000);
	victim_round();
}

int main(int argc, char **argv)
{
	pthread_t listener;

	victim_start("changed_code");
	if (argc != 3)
		return 64;
	void *library = dlopen(argv[2], RTLD_NOW);
	*(void **)&take = library ? dlsym(library, "plugin_take") : NULL;
	*(void **)&give = library ? dlsym(library, "plugin_give") : NULL;
	if (!take || !give)
		return 64;
	if (strcmp(argv[1], "plain") != 0)
		remap_code(argv[1], argv[2]);
	victim_say("POOL %lx %lx %lx", (unsigned long)take, (unsigned long)give,
	           (unsigned long)dlsym(library, "plugin_spare"));
	pthread_create(&listener, NULL, listen_for, NULL);
	victim_ready();
	while (!victim_done()) {
		churn();
		if (unload && library) {
			take = own_take;
			give = own_give;
			dlclose(library);
			library = NULL;
			victim_say("UNLOADED");
		}
	}
	return victim_report();
}
