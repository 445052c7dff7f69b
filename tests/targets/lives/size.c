/* SPDX-License-Identifier: MIT */
/*
 * A victim with much memory, whose copy of malloc's address could be anywhere.
 *
 *     size closed GIB     so much address space that nobody may touch
 *     size open GIB       so much that may be touched, of which a page here and there is
 *     size touched MIB    so much that was written
 *
 * "hide" copies what malloc is at present to the last page of it and answers HIDDEN; "use" calls that and answers USED.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "victim.h"

#define PAGE 4096u
#define SPARSE (64ull << 30)

/* So that the words that the loader fills are read, not only called through. */
static void *(*volatile allocate)(size_t);
static void *(*volatile map)(void *, size_t, int, int, int, off_t);

static VICTIM_FRAME void *(*malloc_now(void))(size_t)
{
	void *(*volatile now)(size_t) = malloc;

	return now;
}

static void use(char *last)
{
	void *(*copy)(size_t);
	void *(**at)(size_t) = (void *)last;

	copy = *(void *(*volatile *)(size_t))at;
	void *block = copy(100);
	if (!block)
		victim_wrong("the copied address of malloc gives nothing");
	free(block);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	uint64_t bytes = argc > 2 ? strtoull(argv[2], NULL, 0) << (strcmp(mode, "touched") ? 30 : 20) : 0;
	char line[64];

	victim_start("size");
	allocate = malloc_now();
	free(allocate(10));
	allocate = NULL;
	int protection = strcmp(mode, "closed") ? PROT_READ | PROT_WRITE : PROT_NONE;
	map = mmap;
	char *memory = map(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		victim_say("CANNOT map so much");
		return 1;
	}
	uint64_t step = !strcmp(mode, "touched") ? PAGE : !strcmp(mode, "open") ? SPARSE : bytes;
	for (uint64_t at = 0; at < bytes && step < bytes; at += step)
		memory[at] = 1;
	victim_ready();
	while (victim_line(line, sizeof line)) {
		char *last = memory + bytes - PAGE;
		if (!strcmp(line, "hide")) {
			void *(*now)(size_t) = malloc_now();
			memcpy(last, &now, sizeof now);
			victim_say("HIDDEN %p", (void *)last);
		} else if (!strcmp(line, "use")) {
			use(last);
			victim_say("USED");
		} else {
			break;
		}
		victim_round();
	}
	victim_round();
	return victim_report();
}
