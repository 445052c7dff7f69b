/* SPDX-License-Identifier: MIT */
#include "arch/start_code.h"

#include <Zydis/Zydis.h>
#include <string.h>

#include "files/whole_io.h"

#define INSTRUCTIONS_MAX 64u
#define PASSED_MAX 512u
#define PAGE 4096u
#define OPERAND_BYTES 4u
#define REGISTERS 16
#define RDX 2
#define RSP 4
#define RSI 6
#define RDI 7

/* What a register holds, if that is known; and the four bytes of the instruction that loaded it with an address. */
struct value {
	bool known;
	uint64_t value;
	uint64_t operand_at; /* 0: none */
	uint64_t operand_base;
	bool operand_signed;
};

struct reader {
	int mem;
	const struct start_arguments *arguments;
	uint64_t pc;
	struct value registers[REGISTERS];
	uint64_t written_end; /* below this address the stack is not any more as it was */
	bool passed;          /* code with conditions has been passed over */
	ZydisDecodedInstruction in;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

enum step { STEP_ON, STEP_TO_MAIN, STEP_UNKNOWN };

static int number_of(ZydisRegister r)
{
	return ZydisRegisterGetClass(r) == ZYDIS_REGCLASS_GPR64 || ZydisRegisterGetClass(r) == ZYDIS_REGCLASS_GPR32
	               ? ZydisRegisterGetId(r)
	               : -1;
}

static uint64_t next_pc(const struct reader *r)
{
	return r->pc + r->in.length;
}

static bool set(struct reader *r, const ZydisDecodedOperand *o, struct value v)
{
	int number = o->type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(o->reg.value) : -1;

	if (number < 0)
		return false;
	if (o->size == 32)
		v.value &= UINT32_MAX;
	r->registers[number] = v;
	return true;
}

static bool address_of(const struct reader *r, const ZydisDecodedOperand *o, uint64_t *address)
{
	if (o->mem.base == ZYDIS_REGISTER_RIP && o->mem.index == ZYDIS_REGISTER_NONE) {
		*address = next_pc(r) + (uint64_t)o->mem.disp.value;
		return true;
	}
	int base = number_of(o->mem.base);
	if (base < 0 || o->mem.index != ZYDIS_REGISTER_NONE || !r->registers[base].known ||
	    o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	*address = r->registers[base].value + (uint64_t)o->mem.disp.value;
	return true;
}

/* A word that is not known is no error: few of them matter. */
static struct value load(const struct reader *r, uint64_t address, unsigned bits)
{
	struct value v = { 0 };

	if (address >= r->written_end && (bits == 32 || bits == 64))
		v.known = whole_io_pread(r->mem, &v.value, bits / 8, address);
	return v;
}

static struct value read_operand(const struct reader *r, const ZydisDecodedOperand *o)
{
	struct value v = { 0 };
	uint64_t address;
	int number;

	switch (o->type) {
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		v.known = true;
		v.value = o->imm.value.u;
		if (r->in.raw.imm[0].size == 32) {
			v.operand_at = r->pc + r->in.raw.imm[0].offset;
			v.operand_signed = r->operands[0].size == 64;
		}
		return v;
	case ZYDIS_OPERAND_TYPE_REGISTER:
		number = number_of(o->reg.value);
		if (number < 0 || !r->registers[number].known)
			return v;
		v.known = true;
		v.value = r->registers[number].value;
		return v;
	case ZYDIS_OPERAND_TYPE_MEMORY: return address_of(r, o, &address) ? load(r, address, o->size) : v;
	default: return v;
	}
}

static struct value effective_address(const struct reader *r)
{
	const ZydisDecodedOperand *o = &r->operands[1];
	struct value v = { 0 };

	v.known = address_of(r, o, &v.value);
	if (v.known && o->mem.base == ZYDIS_REGISTER_RIP && r->in.raw.disp.size == 32) {
		v.operand_at = r->pc + r->in.raw.disp.offset;
		v.operand_base = next_pc(r);
		v.operand_signed = true;
	}
	return v;
}

static bool push(struct reader *r)
{
	struct value *sp = &r->registers[RSP];

	if (!sp->known)
		return false;
	if (r->written_end < sp->value)
		r->written_end = sp->value;
	sp->value -= sizeof(uint64_t);
	return true;
}

static bool pop(struct reader *r)
{
	struct value *sp = &r->registers[RSP];

	if (!sp->known || !set(r, &r->operands[0], load(r, sp->value, 64)))
		return false;
	sp->value += sizeof(uint64_t);
	return true;
}

static bool calculate(struct reader *r)
{
	struct value a = read_operand(r, &r->operands[0]), b = read_operand(r, &r->operands[1]);
	struct value v = { .known = a.known && b.known };

	switch (r->in.mnemonic) {
	case ZYDIS_MNEMONIC_ADD: v.value = a.value + b.value; break;
	case ZYDIS_MNEMONIC_SUB: v.value = a.value - b.value; break;
	case ZYDIS_MNEMONIC_AND: v.value = a.value & b.value; break;
	default: /* xor */
		v.value = a.value ^ b.value;
		if (r->operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    r->operands[0].reg.value == r->operands[1].reg.value)
			v = (struct value){ .known = true };
	}
	return set(r, &r->operands[0], v);
}

static bool hands_main_on(const struct reader *r)
{
	const struct value *function = &r->registers[RDI], *argc = &r->registers[RSI], *argv = &r->registers[RDX];

	return function->known && function->operand_at && argc->known && argc->value == r->arguments->argc &&
	       argv->known && argv->value == r->arguments->argv;
}

static bool branch_target(const struct reader *r, uint64_t *target)
{
	struct value v = r->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? read_operand(r, &r->operands[0])
	                                                                    : (struct value){ 0 };

	*target = v.value;
	return v.known || (r->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	                   ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&r->in, &r->operands[0], r->pc, target)));
}

/* A call or a jump. Where it goes is of no importance once it has main. */
static enum step branch(struct reader *r)
{
	uint64_t target;

	if (hands_main_on(r))
		return STEP_TO_MAIN;
	if (!branch_target(r, &target) || (r->in.mnemonic == ZYDIS_MNEMONIC_CALL && !push(r)))
		return STEP_UNKNOWN;
	r->pc = target;
	return STEP_ON;
}

static bool is_executed(struct reader *r)
{
	switch (r->in.mnemonic) {
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_NOP: return true;
	case ZYDIS_MNEMONIC_MOV: return set(r, &r->operands[0], read_operand(r, &r->operands[1]));
	case ZYDIS_MNEMONIC_LEA: return set(r, &r->operands[0], effective_address(r));
	case ZYDIS_MNEMONIC_PUSH: return push(r);
	case ZYDIS_MNEMONIC_POP: return pop(r);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_XOR: return calculate(r);
	default: return false;
	}
}

static bool decode(struct reader *r, const ZydisDecoder *decoder)
{
	uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];

	return whole_io_pread(r->mem, bytes, sizeof bytes, r->pc) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, bytes, sizeof bytes, &r->in, r->operands));
}

static void forget_written(struct reader *r)
{
	for (unsigned i = 0; i < r->in.operand_count; i++) {
		const ZydisDecodedOperand *o = &r->operands[i];
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || !(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		int number = number_of(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->reg.value));
		if (number >= 0)
			r->registers[number] = (struct value){ 0 };
	}
}

/*
 * musl's start code of a static program that may be anywhere relocates the program itself, in loops, before it jumps to
 * a function that it has the address of in a register. From here to that jump all instructions are looked at in the
 * order in which they stand. What any of them writes up to the last place to which one of them jumps is not known
 * there; from there on it is read as before. They must jump to each other only. Where they write to is not followed: it
 * is the program's data, and the stack below.
 */
static enum step pass_conditions(struct reader *r, const ZydisDecoder *decoder)
{
	const struct reader before = *r;
	uint64_t start = r->pc, join = start, target;

	for (unsigned i = 0; i < PASSED_MAX; i++) {
		if (!decode(r, decoder))
			return STEP_UNKNOWN;
		bool jump = r->in.meta.category == ZYDIS_CATEGORY_COND_BR || r->in.mnemonic == ZYDIS_MNEMONIC_JMP;
		if (jump && r->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&r->in, &r->operands[0], r->pc, &target)) ||
			    target < start)
				return STEP_UNKNOWN;
			join = target > join ? target : join;
			join = next_pc(r) > join ? next_pc(r) : join;
		} else if (jump || r->in.mnemonic == ZYDIS_MNEMONIC_CALL) {
			break;
		} else if (r->in.meta.category == ZYDIS_CATEGORY_RET || r->in.meta.category == ZYDIS_CATEGORY_SYSCALL) {
			return STEP_UNKNOWN;
		}
		r->pc = next_pc(r);
	}
	if (join == start || join > r->pc)
		return STEP_UNKNOWN;
	*r = before;
	for (unsigned i = 0; i < REGISTERS; i++)
		r->registers[i].operand_at = 0; /* main is handed on without conditions */
	for (r->passed = true; r->pc < join; r->pc = next_pc(r)) {
		if (!decode(r, decoder))
			return STEP_UNKNOWN;
		forget_written(r);
	}
	return r->pc == join ? STEP_ON : STEP_UNKNOWN;
}

static enum step read_instruction(struct reader *r, const ZydisDecoder *decoder)
{
	if (!decode(r, decoder))
		return STEP_UNKNOWN;
	if (r->in.mnemonic == ZYDIS_MNEMONIC_CALL || r->in.mnemonic == ZYDIS_MNEMONIC_JMP)
		return branch(r);
	if (!is_executed(r))
		return r->passed ? STEP_UNKNOWN : pass_conditions(r, decoder);
	r->pc = next_pc(r);
	return STEP_ON;
}

/* One write to one page is made wholly or not at all, whatever happens to the writer. */
static bool fill_in(struct start_code *code, int mem, const struct value *function)
{
	uint8_t bytes[START_CODE_BYTES];

	*code = (struct start_code){ .main_address = function->value,
		                     .place = function->operand_at,
		                     .length = OPERAND_BYTES,
		                     .base = function->operand_base,
		                     .is_signed = function->operand_signed };
	return code->place % PAGE <= PAGE - code->length &&
	       whole_io_pread(mem, code->bytes, code->length, code->place) &&
	       start_code_for(code, code->main_address, bytes) && memcmp(bytes, code->bytes, code->length) == 0;
}

bool start_code_read(struct start_code *code, int mem, const struct start_arguments *arguments)
{
	struct reader r = { .mem = mem, .arguments = arguments, .pc = arguments->entry };
	struct start_code found;
	ZydisDecoder decoder;
	enum step step = STEP_ON;

	r.registers[RSP] = (struct value){ .known = true, .value = arguments->sp };
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return false;
	for (unsigned i = 0; i < INSTRUCTIONS_MAX && step == STEP_ON; i++)
		step = read_instruction(&r, &decoder);
	if (step != STEP_TO_MAIN || !fill_in(&found, mem, &r.registers[RDI]))
		return false;
	*code = found;
	return true;
}

bool start_code_for(const struct start_code *code, uint64_t function, uint8_t bytes[START_CODE_BYTES])
{
	const uint64_t distance = function - code->base;
	const uint32_t operand = (uint32_t)distance;

	if (code->is_signed ? distance + 0x80000000u > UINT32_MAX : distance > UINT32_MAX)
		return false;
	memcpy(bytes, &operand, OPERAND_BYTES);
	return true;
}
