/* SPDX-License-Identifier: MIT */
/*
 * x86-64: what compilers and hand-written code really use, by the psABI's DWARF register numbers (6 rbp, 7
 * rsp, 16 return address). Everything else becomes UNWIND_UNSUPPORTED: the walk ends there and says so.
 */
#include "arch/rule_encode.h"

#include <dwarf.h>

#include "unwind_table.h"

#define RBP 6u
#define RSP 7u
#define UCONTEXT_RSP 160 /* offset of the saved rsp in ucontext_t, where a signal frame's CFA is read from */

const uint64_t frame_pointer_number = RBP;
const uint64_t return_address_number = 16;
const uint32_t unwind_kind_last = UNWIND_UNSUPPORTED;

/* An expression of the shape bregN offset [deref [plus_uconst add]]. */
struct simple_expression {
	unsigned base; /* register number */
	int64_t offset;
	bool deref;
	uint64_t add;
};

static bool take_uleb(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	uint64_t v = 0;

	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*value = v;
			return true;
		}
	}
	return false;
}

static bool take_sleb(const uint8_t **at, const uint8_t *end, int64_t *value)
{
	uint64_t v = 0;

	for (unsigned shift = 0; *at < end && shift < 64;) {
		uint8_t byte = *(*at)++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if (byte & 0x40 && shift < 64)
				v |= ~0ull << shift;
			*value = (int64_t)v;
			return true;
		}
	}
	return false;
}

static bool parse_simple(const uint8_t *at, size_t bytes, struct simple_expression *x)
{
	const uint8_t *end = at + bytes;

	*x = (struct simple_expression){ 0 };
	if (at == end || *at < DW_OP_breg0 || *at > DW_OP_breg31)
		return false;
	x->base = *at++ - DW_OP_breg0;
	if (!take_sleb(&at, end, &x->offset))
		return false;
	if (at < end && *at == DW_OP_deref) {
		x->deref = true;
		at++;
		if (at < end && *at == DW_OP_plus_uconst) {
			at++;
			if (!take_uleb(&at, end, &x->add))
				return false;
		}
	}
	return at == end;
}

static bool fits(int64_t n)
{
	return n % 8 == 0 && n >= UNWIND_N_MIN_BYTES && n <= UNWIND_N_MAX_BYTES;
}

static uint32_t rbp_field(const struct frame_register *r)
{
	struct simple_expression x;

	switch (r->kind) {
	case FRAME_SAME: return UNWIND_FP_SAME;
	case FRAME_OFFSET:
		if (r->offset < 0 && r->offset % 8 == 0 && r->offset >= -8 * (int64_t)UNWIND_FP_MAX)
			return (uint32_t)(-r->offset / 8);
		return UNWIND_FP_LOST;
	case FRAME_EXPRESSION:
		/* Functions that realign their stack: rbp is saved at *(rbp + 0). */
		if (parse_simple(r->expression, r->expression_bytes, &x) && x.base == RBP && x.offset == 0 && !x.deref)
			return UNWIND_FP_AT_FP;
		return UNWIND_FP_LOST;
	default: return UNWIND_FP_LOST;
	}
}

/* The kind and n of the CFA; UNWIND_UNSUPPORTED if there is none. */
static unsigned cfa_kind(const struct frame_state *s, int64_t *n)
{
	struct simple_expression x;

	*n = s->cfa_offset;
	if (s->cfa == FRAME_CFA_REGISTER)
		return s->cfa_register == RSP ? UNWIND_SP : s->cfa_register == RBP ? UNWIND_FP : UNWIND_UNSUPPORTED;
	if (s->cfa != FRAME_CFA_EXPRESSION || !parse_simple(s->cfa_expression, s->cfa_expression_bytes, &x))
		return UNWIND_UNSUPPORTED;
	*n = x.offset;
	if (!x.deref)
		return x.base == RSP ? UNWIND_SP : x.base == RBP ? UNWIND_FP : UNWIND_UNSUPPORTED;
	if (x.base == RSP)
		return x.add == 0 ? UNWIND_AT_SP : x.add == 8 ? UNWIND_AT_SP_8 : UNWIND_UNSUPPORTED;
	return x.base == RBP && x.add == 0 ? UNWIND_AT_FP : UNWIND_UNSUPPORTED;
}

static bool is_signal_frame(const struct frame_state *s)
{
	struct simple_expression x;

	return s->cfa == FRAME_CFA_EXPRESSION && parse_simple(s->cfa_expression, s->cfa_expression_bytes, &x) &&
	       x.base == RSP && x.offset == UCONTEXT_RSP && x.deref && x.add == 0;
}

uint32_t rule_encode_word(const struct frame_state *s, bool signal_frame)
{
	int64_t n;

	if (s->return_address.kind == FRAME_UNDEFINED)
		return UNWIND_END;
	if (signal_frame && is_signal_frame(s))
		return UNWIND_SIGNAL;
	if (s->return_address.kind != FRAME_OFFSET || s->return_address.offset != -8)
		return UNWIND_UNSUPPORTED;
	unsigned kind = cfa_kind(s, &n);
	return kind == UNWIND_UNSUPPORTED || !fits(n) ? UNWIND_UNSUPPORTED
	                                              : UNWIND_RULE(kind, n, rbp_field(&s->frame_pointer));
}

/* One word is pushed 11 bytes after the start, before the loader is called. Linkers write that in one form. */
uint32_t rule_encode_in_stub(uint64_t pc)
{
	return UNWIND_RULE(UNWIND_SP, pc % 16 >= 11 ? 16 : 8, UNWIND_FP_SAME);
}
