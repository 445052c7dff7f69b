/* SPDX-License-Identifier: MIT */
/* A program with an allocator of its own, small enough that all of its functions are known. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PART static __attribute__((noinline, noclone, used))
#define EXPORTED __attribute__((visibility("default"), noinline))

static atomic_int own_lock;
static char *own_next, *own_end;
static void (*volatile own_destructor)(void);
static int program_counter;

/* The allocator, reached from malloc. */
PART void own_wait(void)
{
	while (atomic_exchange(&own_lock, 1))
		usleep(1);
}

PART void own_at_exit(void)
{
	own_wait();
	own_next = NULL;
	atomic_store(&own_lock, 0);
}

PART void *own_carve(size_t bytes)
{
	own_wait();
	own_destructor = own_at_exit;
	if (own_next == NULL || (size_t)(own_end - own_next) < bytes) {
		own_next = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		own_end = own_next + (1 << 20);
	}
	void *block = own_next;
	own_next += (bytes + 15) & ~(size_t)15;
	atomic_store(&own_lock, 0);
	return block;
}

PART void *own_tail(size_t bytes)
{
	char *block = own_carve(bytes + 16);

	return block + (block == (char *)1);
}

EXPORTED void *malloc(size_t bytes)
{
	return own_tail(bytes); /* a jump, where optimized */
}

EXPORTED void free(void *block)
{
	(void)block;
}

EXPORTED void *calloc(size_t count, size_t bytes)
{
	return memset(malloc(count * bytes), 0, count * bytes);
}

EXPORTED void *realloc(void *block, size_t bytes)
{
	(void)block;
	return malloc(bytes);
}

/* Not reached from malloc, but takes its lock: by the function that waits, and by hand. */
PART void own_statistics(void)
{
	own_wait();
	program_counter++;
	atomic_store(&own_lock, 0);
}

PART void own_trim(void)
{
	if (!atomic_exchange(&own_lock, 1))
		atomic_store(&own_lock, 0);
}

/* The program. */
PART void program_allocates(void)
{
	program_counter++;
	free(malloc(100));
}

PART void program_works(void)
{
	program_allocates();
}

int main(void)
{
	program_works();
	own_statistics();
	own_trim();
	printf("%d\n", (int)getpid());
	fflush(stdout);
	return read(STDIN_FILENO, (char[1]){ 0 }, 1) != 0; /* until the test ends */
}
