/* SPDX-License-Identifier: MIT */
#include "arch/instruction.h"

#include <Zydis/Zydis.h>

#define LOCK_PREFIX 0xf0
#define NUMBER_OF_RSP 4

static bool is_short_only(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE: return true;
	default: return false;
	}
}

static enum instruction_flow flow_of(const ZydisDecodedInstruction *z)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3: return FLOW_TRAP;
	default: break;
	}
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_CALL: return FLOW_CALL;
	case ZYDIS_CATEGORY_RET: return FLOW_RETURN;
	case ZYDIS_CATEGORY_COND_BR: return FLOW_CONDITION;
	case ZYDIS_CATEGORY_UNCOND_BR: return FLOW_JUMP;
	default: return FLOW_NEXT;
	}
}

/* A branch to an address in the instruction. */
static void note_target(struct instruction *in, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	in->has_target = ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(z, o, in->address, &in->target));
	in->distance_at = z->raw.imm[0].offset;
	in->distance_bytes = z->raw.imm[0].size / 8;
	in->condition = z->opcode & 0x0f;
	in->fixed |= is_short_only(z->mnemonic) || z->mnemonic == ZYDIS_MNEMONIC_XBEGIN || !in->has_target ||
	             (z->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) != 0;
}

/* The register counts from the instruction behind; with a prefix only its lower half does, which nobody writes. */
static void note_memory(struct instruction *in, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	in->has_memory = ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(z, o, in->address, &in->memory));
	in->distance_at = z->raw.disp.offset;
	in->distance_bytes = z->raw.disp.size / 8;
	in->fixed |= o->mem.base != ZYDIS_REGISTER_RIP || !in->has_memory || in->distance_bytes != 4;
}

/* A call of what a word of data holds. The stack may hold the address of any function for a while; and `call *(%rax)`
 * is how code asks a TLS descriptor for an address, which changes rax alone. */
static bool is_pointer(const ZydisDecodedOperand *o)
{
	switch (o->mem.base) {
	case ZYDIS_REGISTER_RSP:
	case ZYDIS_REGISTER_RBP: return false;
	case ZYDIS_REGISTER_RAX: return o->mem.index != ZYDIS_REGISTER_NONE || o->mem.disp.value != 0;
	default: return true;
	}
}

static bool is_argument(ZydisRegister r)
{
	switch (r) {
	case ZYDIS_REGISTER_RCX:
	case ZYDIS_REGISTER_RDX:
	case ZYDIS_REGISTER_RSI:
	case ZYDIS_REGISTER_RDI: return true;
	default: return r >= ZYDIS_REGISTER_R8 && r <= ZYDIS_REGISTER_R11;
	}
}

/* A general register that functions may change. */
static bool is_scratch(ZydisRegister r)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return whole == ZYDIS_REGISTER_RAX || is_argument(whole);
}

static bool is_same_register(const ZydisDecodedOperand *a, const ZydisDecodedOperand *b)
{
	return a->type == ZYDIS_OPERAND_TYPE_REGISTER && b->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       a->reg.value == b->reg.value;
}

static bool reads_register(const ZydisDecodedOperand *o, ZydisRegister written)
{
	const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, written);
	const ZydisRegister used[] = { o->type == ZYDIS_OPERAND_TYPE_REGISTER ? o->reg.value : ZYDIS_REGISTER_NONE,
		                       o->type == ZYDIS_OPERAND_TYPE_MEMORY ? o->mem.base : ZYDIS_REGISTER_NONE,
		                       o->type == ZYDIS_OPERAND_TYPE_MEMORY ? o->mem.index : ZYDIS_REGISTER_NONE };

	for (unsigned i = 0; i < sizeof used / sizeof used[0]; i++)
		if (used[i] != ZYDIS_REGISTER_NONE &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, used[i]) == whole)
			return true;
	return false;
}

/* sign: what undoes it, times the number. */
static void note_sum(struct instruction *in, const ZydisDecodedOperand *o, int sign)
{
	const int64_t undo = o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o[1].imm.value.s > INT8_MIN
	                             ? sign * o[1].imm.value.s
	                             : INT64_MAX;

	in->repeatable = o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && o[0].size == 64 && undo == (int8_t)undo &&
	                 (o[0].reg.value == ZYDIS_REGISTER_RSP || is_scratch(o[0].reg.value));
	if (in->repeatable)
		in->undo = (struct instruction_undo){ (uint8_t)ZydisRegisterGetId(o[0].reg.value), (int8_t)undo };
}

/* By instructions that compilers put first. */
static void note_repeatable(struct instruction *in, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_CMP: in->repeatable = true; return;
	case ZYDIS_MNEMONIC_PUSH:
		in->repeatable = z->operand_width == 64;
		in->undo = (struct instruction_undo){ NUMBER_OF_RSP, 8 };
		return;
	case ZYDIS_MNEMONIC_ADD: note_sum(in, o, -1); return;
	case ZYDIS_MNEMONIC_SUB: note_sum(in, o, 1); return;
	case ZYDIS_MNEMONIC_XOR: in->repeatable = is_same_register(&o[0], &o[1]) && is_scratch(o[0].reg.value); return;
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		in->repeatable = o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && is_scratch(o[0].reg.value) &&
		                 !reads_register(&o[1], o[0].reg.value);
		return;
	default: return;
	}
}

bool instruction_read(struct instruction *in, const uint8_t *code, size_t bytes, uint64_t address)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	ZydisDecoder decoder;

	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, bytes, &z, operands)))
		return false;
	*in = (struct instruction){ .address = address, .bytes = z.length, .flow = flow_of(&z) };
	in->second_entry = z.length > 1 && code[0] == LOCK_PREFIX;
	in->landing_pad = z.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
	in->padding = z.mnemonic == ZYDIS_MNEMONIC_NOP || z.mnemonic == ZYDIS_MNEMONIC_INT3;
	in->loads_address = z.mnemonic == ZYDIS_MNEMONIC_LEA;
	note_repeatable(in, &z, operands);
	for (unsigned i = 0; i < z.operand_count_visible; i++) {
		const ZydisDecodedOperand *o = &operands[i];

		if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative) {
			note_target(in, &z, o);
		} else if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			in->has_immediate = true;
			in->immediate = o->imm.value.u;
		} else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		           (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP) && !in->padding) {
			note_memory(in, &z, o);
		}
		in->calls_pointer |= in->flow == FLOW_CALL && o->type == ZYDIS_OPERAND_TYPE_MEMORY && is_pointer(o);
		in->saves_argument |= z.mnemonic == ZYDIS_MNEMONIC_PUSH && o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		                      is_argument(o->reg.value);
	}
	return true;
}
