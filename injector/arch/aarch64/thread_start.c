/* SPDX-License-Identifier: MIT */
#include "arch/thread_start.h"

#include <string.h>

bool thread_start_is(const struct target_memory *memory, uint64_t return_address)
{
	/* mov x8, #SYS_exit; svc #0: glibc and musl. */
	static const uint32_t instructions[] = { 0xd2800ba8, 0xd4000001 };
	uint32_t code[2];

	return return_address % 4 == 0 && target_read(memory, return_address, code, sizeof code, ERR_IGNORED) == 0 &&
	       memcmp(code, instructions, sizeof code) == 0;
}
