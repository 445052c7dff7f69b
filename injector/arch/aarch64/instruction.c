/* SPDX-License-Identifier: MIT */
/* Each is a word. Entry hooks look at these themselves (entry_code.c): repeatable and undo are not said. */
#include "arch/instruction.h"

#include "arch/aarch64/words.h"

#define WORD_LANDING_PADS 0xd503241f /* bti, in its forms: bits 6 and 7 */

static enum instruction_flow flow_of(uint32_t word)
{
	static const enum instruction_flow indirect[] = { FLOW_JUMP, FLOW_CALL, FLOW_RETURN };
	int64_t distance;
	unsigned what;
	bool calls;

	if (word_is_jump(word, &calls))
		return calls ? FLOW_CALL : FLOW_JUMP;
	if (word_is_condition(word, &distance))
		return FLOW_CONDITION;
	if (word_is_indirect(word, &what))
		return indirect[what];
	/* udf, brk */
	return word >> 16 == 0 || (word & 0xffe0001f) == 0xd4200000 ? FLOW_TRAP : FLOW_NEXT;
}

/* A store of one of x9 to x15 to the stack: functions that save these have a convention of their own. */
static bool saves_temporary(uint32_t word)
{
	struct word_access access;

	return word_accesses(word, &access) && !access.loads && !access.vector && word_from(word) == STACK_POINTER &&
	       word_to(word) >= 9 && word_to(word) <= 15;
}

bool instruction_read(struct instruction *in, const uint8_t *code, size_t bytes, uint64_t address)
{
	uint64_t number;
	unsigned what;
	bool page, authenticated;

	if (bytes < WORD_BYTES || address % WORD_BYTES)
		return false;
	const uint32_t word = word_at(code);
	authenticated = word == WORD_SIGN || word == 0xd503237f; /* paciasp, pacibsp: landing pads, too */
	*in = (struct instruction){ .address = address, .bytes = WORD_BYTES, .flow = flow_of(word), .fixed = true };
	in->has_target = word_branch(word, address, &in->target);
	in->has_memory = word_loads_near(word, address, &in->memory);
	if (word_makes_address(word, address, &page, &number)) {
		in->has_memory = in->loads_address = !page;
		in->memory = number;
	}
	in->distance_bytes = in->has_target || in->has_memory ? WORD_BYTES : 0;
	in->landing_pad = (word & ~0xc0u) == WORD_LANDING_PADS || authenticated;
	in->padding = word == WORD_NOP || word == 0;
	in->calls_register = word_is_indirect(word, &what) && what == 1;
	in->saves_argument = saves_temporary(word);
	/* cmp with a number; movz of a number */
	if ((word & 0x7fc0001f) == 0x7100001f) {
		in->has_immediate = true;
		in->immediate = word >> 10 & 0xfff;
	} else if ((word & 0x7fe00000) == 0x52800000) {
		in->has_immediate = true;
		in->immediate = word >> 5 & 0xffff;
	}
	return true;
}
