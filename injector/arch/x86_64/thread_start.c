/* SPDX-License-Identifier: MIT */
#include "arch/thread_start.h"

#include <string.h>

bool thread_start_is(const struct target_memory *memory, uint64_t return_address)
{
	/* mov %rax, %rdi; mov $SYS_exit, %eax; syscall: glibc; mov %eax, %edi; xor %eax, %eax; mov $SYS_exit, %al;
	 * syscall: musl. */
	static const uint8_t glibc[] = { 0x48, 0x89, 0xc7, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t musl[] = { 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05 };
	uint8_t code[sizeof glibc];

	return target_read(memory, return_address, code, sizeof code, ERR_IGNORED) == 0 &&
	       (memcmp(code, glibc, sizeof glibc) == 0 || memcmp(code, musl, sizeof musl) == 0);
}
