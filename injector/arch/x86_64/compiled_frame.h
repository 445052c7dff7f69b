/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* sub $n, %rsp, behind the return address, or that and the frame pointer. */
static inline bool compiled_frame_made(const uint8_t *code, size_t bytes, uint64_t frame_bytes)
{
	for (size_t i = 0; i + 7 <= bytes; i++) {
		int32_t n = (int8_t)code[i + 3];

		if (code[i] != 0x48 || (code[i + 1] != 0x83 && code[i + 1] != 0x81) || code[i + 2] != 0xec)
			continue;
		if (code[i + 1] == 0x81)
			memcpy(&n, code + i + 3, sizeof n);
		if (n > 0 && ((uint64_t)n + 8 == frame_bytes || (uint64_t)n + 16 == frame_bytes))
			return true;
	}
	return false;
}
