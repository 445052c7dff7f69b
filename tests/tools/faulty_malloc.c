/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: an allocator that refuses every other request of 8 n + 5 bytes, whatever function it is asked by, and so
 * does mremap. For a victim that counts on it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *block, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);
int posix_memalign(void **block, size_t alignment, size_t bytes);

extern atomic_int faulty_armed;
atomic_int faulty_armed; /* by the victim: the loader needs memory too */

static int refused(size_t bytes)
{
	static atomic_uint asked;

	if (!faulty_armed || bytes % 8 != 5 || atomic_fetch_add(&asked, 1) % 2)
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t bytes)
{
	return refused(bytes) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return refused(count * bytes) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
	return refused(bytes) ? NULL : __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return refused(bytes) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
	int saved = errno, no = refused(bytes);

	errno = saved;
	if (!no)
		*block = __libc_memalign(alignment, bytes);
	return no ? ENOMEM : 0;
}

void *mremap(void *address, size_t bytes, size_t new_bytes, int flags, ...)
{
	return refused(new_bytes) ? MAP_FAILED : (void *)syscall(SYS_mremap, address, bytes, new_bytes, flags, 0);
}
