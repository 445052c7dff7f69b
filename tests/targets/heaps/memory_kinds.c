/* SPDX-License-Identifier: MIT */
/*
 * A process whose memory grows by what it is told, one kind after the other. Lines on stdin, each answered by DONE:
 *
 *     live MIB       blocks of 1000 bytes, which stay
 *     freed MIB      blocks of 1000 bytes, all freed but for the last one, which keeps the heap from shrinking
 *     release        frees what live has made
 *     memfd MIB      shared memory
 *     file MIB PATH  a mapping of a file of that size, which is made and read
 *     stacks N       threads that have used a MiB of their stacks each, and sleep
 *     untouched MIB  one block, of which nothing is touched
 *     emptied MIB    one block, which is written, and its pages given back
 *     aligned MIB    text in blocks of a MiB, at multiples of 64, 128, … bytes, up to 2 MiB
 *     mappings N     of a page each, which the kernel cannot merge
 *     execute        cat, which goes on with stdin and stdout
 */
#include "victim.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK_BYTES 1000u
#define BLOCKS_PER_MIB 1040u
#define BLOCKS_MAX (1024u * BLOCKS_PER_MIB)
#define STACK_BYTES (1u << 20)

static void **blocks; /* no block itself */
static size_t kept;
static pthread_barrier_t ready;

static VICTIM_FRAME void *keep_block(void)
{
	return memset(malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
}

static VICTIM_FRAME void *pass_block(void)
{
	return memset(malloc(BLOCK_BYTES), 2, BLOCK_BYTES);
}

static void make_live(size_t mib)
{
	for (size_t i = 0; i < mib * BLOCKS_PER_MIB && kept < BLOCKS_MAX; i++)
		blocks[kept++] = keep_block();
}

static void make_freed(size_t mib)
{
	void **list = blocks + kept;
	const size_t count = mib * BLOCKS_PER_MIB < BLOCKS_MAX - kept ? mib * BLOCKS_PER_MIB : BLOCKS_MAX - kept;

	for (size_t i = 0; i < count; i++)
		list[i] = pass_block();
	for (size_t i = 0; i + 1 < count; i++)
		free(list[i]);
}

static void release(void)
{
	while (kept)
		free(blocks[--kept]);
}

static void map(int fd, size_t bytes)
{
	volatile char *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

	if ((void *)at == MAP_FAILED)
		victim_wrong("nothing mapped");
	else
		for (size_t i = 0; i < bytes; i += 4096)
			(void)at[i];
	close(fd);
}

/* Written, so that a mapping of it has its pages. */
static int fill(int fd, size_t bytes)
{
	static char mib[1 << 20];

	memset(mib, 3, sizeof mib);
	for (size_t at = 0; at < bytes; at += sizeof mib)
		if (fd < 0 || write(fd, mib, sizeof mib) != sizeof mib)
			victim_wrong("nothing written");
	return fd;
}

static void *use_stack(void *unused)
{
	volatile char used[STACK_BYTES];

	for (size_t i = 0; i < sizeof used; i += 4096)
		used[i] = 1;
	pthread_barrier_wait(&ready);
	pause();
	return unused;
}

static void start_threads(unsigned count)
{
	pthread_t one;

	pthread_barrier_init(&ready, NULL, count + 1);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&one, NULL, use_stack, NULL))
			victim_wrong("no thread");
	pthread_barrier_wait(&ready);
}

static void make_emptied(size_t bytes)
{
	char *block = blocks[kept++] = malloc(bytes);
	char *page = (char *)(((uintptr_t)block + 4095) & ~(uintptr_t)4095);

	memset(block, 4, bytes);
	if (madvise(page, bytes - 4096, MADV_DONTNEED))
		victim_wrong("nothing given back");
}

static void make_aligned(size_t mib)
{
	for (size_t i = 0, alignment = 64; i < mib; i++, alignment = alignment < 2 << 20 ? 2 * alignment : 64)
		if (posix_memalign(&blocks[kept], alignment, 1 << 20) != 0)
			victim_wrong("no memory");
		else
			memset(blocks[kept++], 'x', 1 << 20);
}

static void make_mappings(size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		    MAP_FAILED)
			victim_wrong("nothing mapped");
}

static void do_line(const char *line)
{
	char path[256] = "";
	size_t n = 0;

	if (sscanf(line, "live %zu", &n) == 1)
		make_live(n);
	else if (sscanf(line, "freed %zu", &n) == 1)
		make_freed(n);
	else if (!strcmp(line, "release"))
		release();
	else if (sscanf(line, "memfd %zu", &n) == 1)
		map(fill(memfd_create("cache", MFD_CLOEXEC), n << 20), n << 20);
	else if (sscanf(line, "file %zu %255s", &n, path) == 2)
		map(fill(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), n << 20), n << 20);
	else if (sscanf(line, "stacks %zu", &n) == 1)
		start_threads((unsigned)n);
	else if (sscanf(line, "untouched %zu", &n) == 1)
		blocks[kept++] = malloc(n << 20);
	else if (sscanf(line, "emptied %zu", &n) == 1)
		make_emptied(n << 20);
	else if (sscanf(line, "aligned %zu", &n) == 1)
		make_aligned(n);
	else if (sscanf(line, "mappings %zu", &n) == 1)
		make_mappings(n);
	else if (!strcmp(line, "execute"))
		execlp("cat", "cat", NULL);
	else
		victim_wrong("no such kind: %s", line);
}

int main(void)
{
	char line[320];

	victim_start("memory_kinds");
	blocks = mmap(NULL, BLOCKS_MAX * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (blocks == MAP_FAILED)
		victim_wrong("no memory");
	victim_round();
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end")) {
		do_line(line);
		victim_say("DONE");
		victim_round();
	}
	return victim_report();
}
