/* SPDX-License-Identifier: MIT */
/* The step from call frame information to the rule words of include/unwind_table.h, per CPU. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a register of the caller is found. */
enum frame_register_kind {
	FRAME_SAME, /* unchanged (the default) */
	FRAME_UNDEFINED,
	FRAME_OFFSET,     /* stored at CFA + offset */
	FRAME_EXPRESSION, /* stored where the expression says */
	FRAME_OTHER,      /* in a register, a computed value … */
};

struct frame_register {
	enum frame_register_kind kind;
	int64_t offset;
	const uint8_t *expression;
	size_t expression_bytes;
};

enum frame_cfa_kind {
	FRAME_CFA_NONE,
	FRAME_CFA_REGISTER, /* register + offset */
	FRAME_CFA_EXPRESSION,
};

/* The rules in force at one pc, as far as the walk needs them. */
struct frame_state {
	enum frame_cfa_kind cfa;
	uint64_t cfa_register; /* DWARF number */
	int64_t cfa_offset;
	const uint8_t *cfa_expression;
	size_t cfa_expression_bytes;
	struct frame_register frame_pointer;
	struct frame_register return_address;
};

/* DWARF numbers of the two registers of which frame_state keeps the rules. */
extern const uint64_t frame_pointer_number;
extern const uint64_t return_address_number;

/* The last kind of rules (enum unwind_kind) that this machine has. */
extern const uint32_t unwind_kind_last;

/* The rule word; signal_frame: the CIE has the augmentation S. */
uint32_t rule_encode_word(const struct frame_state *state, bool signal_frame);

/* The rule at pc in a stub of the PLT, for which there is none that can be used. */
uint32_t rule_encode_in_stub(uint64_t pc);
