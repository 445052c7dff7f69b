/* SPDX-License-Identifier: MIT */
/*
 * One machine instruction, as far as entry hooks and the flow of control need to know it. Decoded by Zydis and never by
 * hand: a wrong length would put a jump into the middle of an instruction.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define INSTRUCTION_MAX 15u
#else
#define INSTRUCTION_MAX 4u
#endif

/* Is the byte by itself what a debugger or a uprobe writes over the first one of an instruction? */
static inline bool instruction_is_breakpoint(uint8_t byte)
{
	return INSTRUCTION_MAX > 4 && byte == 0xcc;
}

enum instruction_flow {
	FLOW_NEXT,      /* goes on behind itself; system calls too */
	FLOW_CONDITION, /* goes on behind itself or to target */
	FLOW_JUMP,      /* never goes on behind itself */
	FLOW_CALL,
	FLOW_RETURN,
	FLOW_TRAP, /* ud2, hlt, int3: nobody passes here */
};

/* To a register a number is added. */
struct instruction_undo {
	uint8_t number;  /* of the register, as instructions have it */
	int8_t distance; /* 0: nothing is to be done */
};

struct instruction {
	uint64_t address;
	uint8_t bytes;
	enum instruction_flow flow;
	bool has_target; /* of a branch: an address in the instruction */
	uint64_t target;
	bool has_memory; /* an operand in memory at a distance from the instruction, or its address (lea) */
	uint64_t memory;
	uint8_t distance_at;    /* offset of the distance (of target or memory) in the instruction */
	uint8_t distance_bytes; /* 1 or 4; 0: it refers to nothing by distance */
	uint8_t second_entry; /* offset where code may jump into it (past a lock prefix, with one thread); 0: nowhere */
	uint8_t condition;    /* of a conditional jump: the low half of its opcode */
	bool fixed;           /* refers by distance in a way that cannot be widened: loop, jrcxz, xbegin, prefixes */
	bool landing_pad;     /* endbr64 */
	bool padding;         /* nop of any length, int3 */
	bool loads_address;   /* lea */
	bool calls_pointer;   /* a call through a word of data: not on the stack, and no descriptor of TLS */
	bool calls_register;  /* a call through a register, where only that can be: code_calls_what_was_read() tells */
	bool saves_argument;  /* saves a register that a called function may change, and that most do not save */
	bool repeatable;      /* as the first of a function: may be run twice (below), if in between … */
	struct instruction_undo undo;
	bool has_immediate;
	uint64_t immediate;
};

/*
 * Repeatable is what changes nothing that a caller or the rest of the function would miss: it reads anything, and
 * writes flags, a register that functions may change and whose old value it does not use, or, by push, below the stack
 * pointer; or it adds a number to such a register, or to the stack pointer, which can be undone.
 */

/* False: the bytes are no instruction, or not all of it is there. */
bool instruction_read(struct instruction *in, const uint8_t *code, size_t bytes, uint64_t address);

/* Does control never pass from it to what stands behind? A call may not return, but nothing shows that. */
static inline bool instruction_ends_flow(const struct instruction *in)
{
	return in->flow == FLOW_JUMP || in->flow == FLOW_RETURN || in->flow == FLOW_TRAP;
}
