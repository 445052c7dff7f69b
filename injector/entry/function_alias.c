/* SPDX-License-Identifier: MIT */
#include "entry/function_alias.h"

#include "arch/instruction.h"

static unsigned nop_at(const uint8_t *code, size_t bytes)
{
	struct instruction in;

	return instruction_read(&in, code, bytes, 0) && in.padding && in.flow == FLOW_NEXT ? in.bytes : 0;
}

unsigned function_alias_before(const uint8_t *before, size_t bytes)
{
	for (unsigned i = 1; i <= bytes && i <= FUNCTION_ALIAS_MAX; i++)
		if (nop_at(before + bytes - i, i) == i)
			return i;
	return 0;
}

unsigned function_alias_skip(const uint8_t *code, size_t bytes)
{
	unsigned at = 0;

	for (unsigned nop; (nop = nop_at(code + at, bytes - at)); at += nop)
		;
	return at;
}
