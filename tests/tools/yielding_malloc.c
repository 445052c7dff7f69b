/* SPDX-License-Identifier: MIT */
/* Preloaded: a malloc that calls yielding_malloc_yield when YIELDING bytes are asked for, as one does that waits for a
 * lock by running another coroutine. */
#include <stddef.h>

#define YIELDING ((16u << 20) + 4242u)

extern void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes);

extern void (*yielding_malloc_yield)(void);
void (*yielding_malloc_yield)(void); /* by the victim */

void *malloc(size_t bytes)
{
	if (bytes == YIELDING && yielding_malloc_yield)
		yielding_malloc_yield();
	return __libc_malloc(bytes);
}
