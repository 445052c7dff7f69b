/* SPDX-License-Identifier: MIT */
/* An allocator library for LD_PRELOAD with three kinds of operator new: operator delete is free; operator delete[] does
 * something of its own; the aligned one has a name of an allocator's own. With CHECKS_KIND operator delete is not free.
 */
#include <stddef.h>
#include <stdint.h>

static _Alignas(64) unsigned char arena[64 << 20];
static size_t used;
static volatile size_t freed;

static inline __attribute__((always_inline)) void *take(size_t alignment, size_t size)
{
	size_t at = __atomic_fetch_add(&used, (size + 127) & ~(size_t)63, __ATOMIC_RELAXED);

	return at + size > sizeof arena ? NULL : arena + (at & ~(alignment - 1));
}

#define FUNCTION(result, name, ...)                                                                                    \
	result name(__VA_ARGS__);                                                                                      \
	__attribute__((noinline)) result name(__VA_ARGS__)

FUNCTION(void *, malloc, size_t size)
{
	return take(16, size);
}

FUNCTION(void, free, void *p)
{
	freed += p != NULL;
}

FUNCTION(void *, calloc, size_t n, size_t size)
{
	return take(16, n * size);
}

FUNCTION(void *, realloc, void *p, size_t size)
{
	unsigned char *block = take(16, size);

	for (size_t i = 0; p && block && i < size && (unsigned char *)p + i < arena + sizeof arena; i++)
		block[i] = ((unsigned char *)p)[i];
	return block;
}

FUNCTION(void *, memalign, size_t alignment, size_t size)
{
	return take(alignment, size);
}

FUNCTION(void *, _Znwm, size_t size)
{
	return take(16, size + 1);
}

FUNCTION(void, _ZdlPv, void *p)
{
	if (CHECKS_KIND)
		freed += p != NULL;
	free(p);
}

FUNCTION(void *, _Znam, size_t size)
{
	return take(16, size + 2);
}

FUNCTION(void, _ZdaPv, void *p)
{
	freed += p != NULL;
	free(p);
}

FUNCTION(void *, tc_new_aligned, size_t size, size_t alignment)
{
	return take(alignment, size + 3);
}

void *_ZnwmSt11align_val_t(size_t size, size_t alignment) __attribute__((alias("tc_new_aligned")));

/* What malloc does without memory; the function is the last one of the code. */
static volatile int new_mode = NEW_MODE;

__attribute__((section("code_at_the_end"))) FUNCTION(int, tc_query_new_mode, void)
{
	return new_mode;
}
