/* SPDX-License-Identifier: MIT */
#include "arch/function_alias.h"

#include "arch/instruction.h"
#include "arch/x86_64/nop_before.h"

static unsigned nop_at(const uint8_t *code, size_t bytes)
{
	struct instruction in;

	return instruction_read(&in, code, bytes, 0) && in.padding && in.flow == FLOW_NEXT ? in.bytes : 0;
}

unsigned nop_before(const uint8_t *end, size_t bytes)
{
	for (unsigned i = 1; i <= bytes && i <= FUNCTION_ALIAS_AROUND; i++)
		if (nop_at(end - i, i) == i)
			return i;
	return 0;
}

/* How many bytes of nops the code begins with. */
static unsigned nops(const uint8_t *code)
{
	unsigned at = 0;

	for (unsigned nop; (nop = nop_at(code + at, FUNCTION_ALIAS_AROUND - at)); at += nop)
		;
	return at;
}

uint64_t function_alias_place(uint64_t pointer)
{
	return pointer;
}

struct function_alias function_alias_find(uint64_t pointer, const uint8_t around[2 * FUNCTION_ALIAS_AROUND])
{
	const unsigned skipped = nops(around + FUNCTION_ALIAS_AROUND);
	const unsigned before = skipped ? 0 : nop_before(around + FUNCTION_ALIAS_AROUND, FUNCTION_ALIAS_AROUND);

	return (struct function_alias){ pointer + skipped, skipped || before ? pointer - before : 0 };
}

const char *function_alias_obstacle(void)
{
	return NULL;
}
