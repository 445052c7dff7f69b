/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The number of an instruction that ends in 8 bits, or, if it is the longer one, 32. */
static inline uint64_t compiled_frame_number(const uint8_t *code, bool longer)
{
	int32_t n = (int8_t)*code;

	if (longer)
		memcpy(&n, code, sizeof n);
	return n > 0 ? (uint64_t)n : 0;
}

/*
 * sub $n, %rsp, behind the return address, or that and the frame pointer. Where code is taken back a jump lies over
 * that if it is the first instruction; then C2's next one is still there: mov %rbp, n(%rsp), below the return address.
 */
static inline bool compiled_frame_made(const uint8_t *code, size_t bytes, uint64_t frame_bytes)
{
	for (size_t i = 0; i + 9 <= bytes; i++) {
		const uint8_t *c = code + i;
		uint64_t n = 0;

		if (c[0] == 0x48 && (c[1] == 0x83 || c[1] == 0x81) && c[2] == 0xec)
			n = compiled_frame_number(c + 3, c[1] == 0x81);
		if (n > 0 && (n + 8 == frame_bytes || n + 16 == frame_bytes))
			return true;
		if (c[0] == 0x48 && c[1] == 0x89 && (c[2] == 0x6c || c[2] == 0xac) && c[3] == 0x24 &&
		    compiled_frame_number(c + 4, c[2] == 0xac) + 16 == frame_bytes)
			return true;
	}
	return false;
}
