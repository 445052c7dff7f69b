/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: a malloc that spends a second inside itself when 4242 bytes are asked for, as if it held a lock so long.
 * It sleeps with %rbp 0, by which a walk along frame pointers takes it for the outermost frame: compiled without unwind
 * information too.
 */
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

extern void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes);

static long rest_for(struct timespec *rest)
{
	long result = SYS_nanosleep;

	__asm__ volatile("push %%rbp\n\t"
	                 "xor %%ebp, %%ebp\n\t"
	                 "syscall\n\t"
	                 "pop %%rbp"
	                 : "+a"(result)
	                 : "D"(rest), "S"(rest)
	                 : "rcx", "r11", "memory");
	return result;
}

void *malloc(size_t bytes)
{
	if (bytes == 4242) {
		struct timespec rest = { .tv_sec = 1 };
		while (rest_for(&rest) != 0)
			;
	}
	return __libc_malloc(bytes);
}
