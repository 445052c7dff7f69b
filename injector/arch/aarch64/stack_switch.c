/* SPDX-License-Identifier: MIT */
#include "arch/stack_switch.h"

#include "arch/aarch64/words.h"

/* mov sp, xN: an addition of 0. From the frame pointer it takes away what the function has below that. */
bool stack_switch_at(const uint8_t code[STACK_SWITCH_BYTES])
{
	const uint32_t word = word_at(code);

	return (word & 0xfffffc1f) == 0x9100001f && word_from(word) != 29;
}
