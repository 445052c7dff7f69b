/* SPDX-License-Identifier: MIT */
/*
 * Counts the live blocks of a program on glibc's malloc, for bench/census/truth: preloaded, it stands before malloc and
 * its relatives. The counts are private variables, so that a forked child goes on with those of its parent; they are
 * read from outside. Works with each glibc from 2.17 on, in an older root, too: it needs nothing newer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

/* Read by their names. */
_Atomic long census_count_blocks, census_count_bytes;

static void *count(void *block, long sign)
{
	if (block) {
		atomic_fetch_add_explicit(&census_count_blocks, sign, memory_order_relaxed);
		atomic_fetch_add_explicit(&census_count_bytes, sign * (long)malloc_usable_size(block),
		                          memory_order_relaxed);
	}
	return block;
}

void *malloc(size_t bytes)
{
	return count(__libc_malloc(bytes), 1);
}

void *calloc(size_t number, size_t bytes)
{
	return count(__libc_calloc(number, bytes), 1);
}

void free(void *block)
{
	__libc_free(count(block, -1));
}

void *realloc(void *block, size_t bytes)
{
	count(block, -1);
	void *moved = __libc_realloc(block, bytes);
	if (!moved && bytes)
		count(block, 1); /* it stays */
	return count(moved, 1);
}

void *memalign(size_t alignment, size_t bytes)
{
	return count(__libc_memalign(alignment, bytes), 1);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
	void *made = memalign(alignment, bytes);

	if (!made)
		return ENOMEM;
	*block = made;
	return 0;
}
