/* SPDX-License-Identifier: MIT */
/* Preloaded: a malloc that spends a second inside itself when 4242 bytes are asked for, as if it held a lock so long. */
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes);

void *malloc(size_t bytes)
{
	if (bytes == 4242) {
		struct timespec rest = { .tv_sec = 1 };
		while (syscall(SYS_nanosleep, &rest, &rest) != 0)
			;
	}
	return __libc_malloc(bytes);
}
