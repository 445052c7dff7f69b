/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COMPILED_SUBTRACT 0xd10003ffu    /* sub sp, sp, #n, with n in 12 bits from bit 10 on; bit 22: n * 4096 */
#define COMPILED_SUBTRACT_X8 0xcb2863ffu /* sub sp, sp, x8 */
#define COMPILED_SAVE 0xa9007bfdu        /* stp x29, x30, [sp, #n], with n / 8 in 7 bits from bit 15 on */
#define COMPILED_NUMBER_X8 0x52800008u   /* mov w8 or x8, #n, with n in 16 bits from bit 5 on */

/*
 * What an instruction says that a frame has, without the saved frame pointer and the return address, or, if it makes
 * place for these as well, with them. *with: of those, too. 0: nothing.
 */
static inline uint64_t compiled_frame_number(uint32_t instruction, uint32_t before, bool *with)
{
	*with = false;
	if ((instruction & 0xff8003ffu) == COMPILED_SUBTRACT) {
		*with = true;
		return (uint64_t)(instruction >> 10 & 0xfff) << (instruction >> 22 & 1 ? 12 : 0);
	}
	if ((instruction & 0xffc07fffu) == COMPILED_SAVE && !(instruction >> 21 & 1))
		return (instruction >> 15 & 0x3f) * 8;
	if (instruction == COMPILED_SUBTRACT_X8 && (before & 0x7fe0001fu) == COMPILED_NUMBER_X8)
		return before >> 5 & 0xffff;
	return 0;
}

/*
 * A small frame is made at once, and x29 and x30 stored at its end; for a larger one these are pushed, then the stack
 * pointer moves on by the rest: a number, or, if it is too large for that, one that x8 takes before.
 */
static inline bool compiled_frame_made(const uint8_t *code, size_t bytes, uint64_t frame_bytes)
{
	uint32_t instruction, before = 0;

	for (size_t i = 0; i + sizeof instruction <= bytes; i += sizeof instruction, before = instruction) {
		bool with;

		memcpy(&instruction, code + i, sizeof instruction);
		const uint64_t n = compiled_frame_number(instruction, before, &with);
		if (n > 0 && (n + 16 == frame_bytes || (with && n == frame_bytes)))
			return true;
	}
	return false;
}
