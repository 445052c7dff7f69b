/* SPDX-License-Identifier: MIT */
/*
 * What compilers and hand-written code use, by the numbers of DWARF for the Arm 64-bit architecture (29 frame pointer,
 * 30 link register, 31 stack pointer). The return address is where the frame pointer is saved, in the word above, or
 * it is alone, or in its register. Everything else becomes UNWIND_UNSUPPORTED: the walk ends there and says so.
 */
#include "arch/rule_encode.h"

#include "unwind_table.h"

#define FRAME_POINTER 29u
#define LINK 30u
#define STACK_POINTER 31u

const uint64_t frame_pointer_number = FRAME_POINTER;
const uint64_t return_address_number = LINK;
const uint32_t unwind_kind_last = UNWIND_LINK_FP;

static bool fits(int64_t n)
{
	return n % 8 == 0 && n >= UNWIND_N_MIN_BYTES && n <= UNWIND_N_MAX_BYTES;
}

/* Saved so many words below the CFA; 0: not so. */
static uint32_t words_below(const struct frame_register *r)
{
	const bool below = r->kind == FRAME_OFFSET && r->offset < 0 && r->offset % 8 == 0;

	return below && r->offset >= -8 * (int64_t)UNWIND_FP_MAX ? (uint32_t)(-r->offset / 8) : 0;
}

uint32_t rule_encode_word(const struct frame_state *s, bool signal_frame)
{
	const uint32_t fp = words_below(&s->frame_pointer), link = words_below(&s->return_address);
	const bool by_sp = s->cfa_register == STACK_POINTER;

	if (s->return_address.kind == FRAME_UNDEFINED)
		return UNWIND_END;
	if (signal_frame)
		return UNWIND_SIGNAL;
	if (s->cfa != FRAME_CFA_REGISTER || (!by_sp && s->cfa_register != FRAME_POINTER) || !fits(s->cfa_offset))
		return UNWIND_UNSUPPORTED;
	/* At the lower end of a frame, which may be large. */
	if (s->frame_pointer.kind == FRAME_OFFSET && s->return_address.kind == FRAME_OFFSET && !fp &&
	    s->frame_pointer.offset == -s->cfa_offset && s->return_address.offset == 8 - s->cfa_offset)
		return UNWIND_RULE(by_sp ? UNWIND_PAIR_SP : UNWIND_PAIR_FP, s->cfa_offset, UNWIND_FP_AT_FP);
	if (fp && link && fp == link + 1)
		return UNWIND_RULE(by_sp ? UNWIND_PAIR_SP : UNWIND_PAIR_FP, s->cfa_offset, fp);
	if (s->frame_pointer.kind == FRAME_SAME && (link || s->return_address.kind == FRAME_SAME))
		return UNWIND_RULE(by_sp ? UNWIND_LINK_SP : UNWIND_LINK_FP, s->cfa_offset, link);
	return UNWIND_UNSUPPORTED;
}

/* Of the stub of a function: it has changed nothing yet. */
uint32_t rule_encode_in_stub(uint64_t pc)
{
	(void)pc;
	return UNWIND_RULE(UNWIND_LINK_SP, 0, 0);
}
