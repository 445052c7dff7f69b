/* SPDX-License-Identifier: MIT */
/*
 * A program with an allocator of its own over mmap. After the line "go" on stdin its pool grows by 64 MiB, with an
 * argument in a memfd; it prints TRUTH and a JSON object, and keeps the blocks until the line "end", when their
 * contents are checked.
 */
#include "victim.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POOL_BYTES (64u << 20)
#define BLOCK_BYTES 256u

static unsigned char *pool;

/* Also built with the name of Zend's. */
VICTIM_FRAME unsigned char *pool_block(size_t i);
VICTIM_FRAME unsigned char *pool_block(size_t i)
{
	return pool + i * BLOCK_BYTES;
}

static VICTIM_FRAME void pool_grow(bool shared)
{
	int fd = shared ? memfd_create("pool", MFD_CLOEXEC) : -1;

	if (shared && ftruncate(fd, POOL_BYTES) != 0)
		victim_wrong("no memory to share");
	pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (pool == MAP_FAILED) {
		victim_wrong("no memory");
		pool = NULL;
	}
	for (size_t i = 0; pool && i < POOL_BYTES / BLOCK_BYTES; i++)
		memset(pool_block(i), (int)(i % 251), BLOCK_BYTES);
}

static void check(void)
{
	for (size_t i = 0; pool && i < POOL_BYTES / BLOCK_BYTES; i++)
		if (pool_block(i)[i % BLOCK_BYTES] != i % 251) {
			victim_wrong("block %zu changed", i);
			return;
		}
	victim_round();
}

int main(int argc, char **argv)
{
	char line[32];

	(void)argv;
	victim_start("own_pool");
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end")) {
		if (strcmp(line, "go"))
			continue;
		pool_grow(argc > 1);
		victim_say("TRUTH {\"function\":\"pool_grow\",\"live_bytes\":%u}", POOL_BYTES);
		victim_say("TRUTH-END");
	}
	check();
	return victim_report();
}
