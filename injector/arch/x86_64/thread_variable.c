/* SPDX-License-Identifier: MIT */
#include "arch/thread_variable.h"

#include <Zydis/Zydis.h>

#define INSTRUCTIONS_MAX 16u

/* What a register holds. */
enum content {
	UNKNOWN,
	NUMBER,  /* offset */
	ADDRESS, /* address: of something in the module */
	WORD,    /* the word at address, + offset */
	PLACE,   /* the address of a variable of the thread: place */
	VALUE,   /* … and what is in it */
};

struct value {
	enum content content;
	uint64_t address;
	int64_t offset;
	struct thread_variable place;
};

/* Of rax and of rdi: no other register has a part in it. */
struct follower {
	struct value rax, rdi;
	uint64_t at; /* address of the instruction */
};

static struct value *value_in(struct follower *f, ZydisRegister r)
{
	return r == ZYDIS_REGISTER_RAX ? &f->rax : r == ZYDIS_REGISTER_RDI ? &f->rdi : NULL;
}

static bool is_rip(const ZydisDecodedOperand *o)
{
	return o->mem.base == ZYDIS_REGISTER_RIP && o->mem.index == ZYDIS_REGISTER_NONE;
}

/* The same place, so much further; as the processor adds. */
static struct value moved(struct value v, int64_t by)
{
	if (v.content == PLACE)
		v.place.offset = (int64_t)((uint64_t)v.place.offset + (uint64_t)by);
	else if (v.content == NUMBER || v.content == WORD)
		v.offset = (int64_t)((uint64_t)v.offset + (uint64_t)by);
	else
		v.content = UNKNOWN;
	return v;
}

/* From the thread pointer on. */
static struct value place_of(const struct value *distance)
{
	struct value v = { .content = PLACE };

	if (distance->content == NUMBER)
		v.place = (struct thread_variable){ THREAD_VARIABLE_OFFSET, 0, distance->offset };
	else if (distance->content == WORD)
		v.place = (struct thread_variable){ THREAD_VARIABLE_WORD, distance->address, distance->offset };
	else
		v.content = UNKNOWN;
	return v;
}

/* What an operand in memory leads to: of lea the address, of mov what is there. */
static struct value load(struct follower *f, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	const struct value nothing = { .content = NUMBER }, *base = &nothing;
	struct value v = { .content = UNKNOWN };
	uint64_t address;

	if (o->mem.index != ZYDIS_REGISTER_NONE || (z->mnemonic != ZYDIS_MNEMONIC_LEA && o->size != 64))
		return v;
	if (is_rip(o)) {
		if (o->mem.segment == ZYDIS_REGISTER_FS ||
		    !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(z, o, f->at, &address)))
			return v;
		return (struct value){ .content = z->mnemonic == ZYDIS_MNEMONIC_LEA ? ADDRESS : WORD,
			               .address = address };
	}
	if (o->mem.base != ZYDIS_REGISTER_NONE && !(base = value_in(f, o->mem.base)))
		return v;
	v = moved(*base, o->mem.disp.value);
	if (z->mnemonic == ZYDIS_MNEMONIC_LEA)
		return v;
	if (o->mem.segment == ZYDIS_REGISTER_FS) {
		v = place_of(&v);
		/* The thread pointer is its own first word. */
		if (v.content == PLACE && v.place.kind == THREAD_VARIABLE_OFFSET && v.place.offset == 0)
			return v;
	}
	v.content = v.content == PLACE ? VALUE : UNKNOWN;
	return v;
}

static struct value sum(const struct value *a, const struct value *b)
{
	/* The thread pointer itself, and a distance from it. */
	if (a->content == PLACE && a->place.kind == THREAD_VARIABLE_OFFSET && a->place.offset == 0)
		return place_of(b);
	return b->content == NUMBER ? moved(*a, b->offset) : (struct value){ .content = UNKNOWN };
}

static struct value operand(struct follower *f, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	const struct value unknown = { .content = UNKNOWN }, *held;

	switch (o->type) {
	case ZYDIS_OPERAND_TYPE_IMMEDIATE: return (struct value){ .content = NUMBER, .offset = o->imm.value.s };
	case ZYDIS_OPERAND_TYPE_MEMORY: return load(f, z, o);
	case ZYDIS_OPERAND_TYPE_REGISTER: held = value_in(f, o->reg.value); return held ? *held : unknown;
	default: return unknown;
	}
}

/* A call of a function that is given the index of a block: the relocations show that it is one. */
static void call(struct follower *f)
{
	const struct value given = f->rdi;

	f->rax = f->rdi = (struct value){ .content = UNKNOWN };
	if (given.content == ADDRESS)
		f->rax = (struct value){ .content = PLACE, .place = { THREAD_VARIABLE_INDEX, given.address, 0 } };
}

/* Instructions that concern the stack alone. */
static bool is_frame(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_LEAVE: return true;
	case ZYDIS_MNEMONIC_POP:
		return o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && o[0].size == 64 &&
		       o[0].reg.value != ZYDIS_REGISTER_RAX && o[0].reg.value != ZYDIS_REGISTER_RDI;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_MOV:
		return o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       (o[0].reg.value == ZYDIS_REGISTER_RSP || o[0].reg.value == ZYDIS_REGISTER_RBP) &&
		       o[1].type != ZYDIS_OPERAND_TYPE_MEMORY;
	default: return false;
	}
}

/* False: it does something else. */
static bool follow(struct follower *f, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	struct value *to, from;

	if (is_frame(z, o))
		return true;
	if (z->mnemonic == ZYDIS_MNEMONIC_CALL) {
		call(f);
		return true;
	}
	if (o[0].type != ZYDIS_OPERAND_TYPE_REGISTER || !(to = value_in(f, o[0].reg.value)))
		return false;
	from = operand(f, z, &o[1]);
	if (z->mnemonic == ZYDIS_MNEMONIC_ADD)
		*to = sum(to, &from);
	else if (z->mnemonic == ZYDIS_MNEMONIC_MOV || z->mnemonic == ZYDIS_MNEMONIC_LEA)
		*to = from;
	else
		return false;
	return true;
}

bool thread_variable_read(struct thread_variable *v, const uint8_t *code, size_t bytes, uint64_t address)
{
	struct follower f = { .at = address };
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	ZydisDecoder decoder;
	size_t at = 0;

	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return false;
	for (unsigned i = 0; i < INSTRUCTIONS_MAX && at < bytes; i++, at += z.length) {
		f.at = address + at;
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, bytes - at, &z, operands)))
			return false;
		if (z.mnemonic == ZYDIS_MNEMONIC_RET) {
			*v = f.rax.place;
			return f.rax.content == VALUE;
		}
		if (!follow(&f, &z, operands))
			return false;
	}
	return false;
}
