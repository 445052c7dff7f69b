/* SPDX-License-Identifier: MIT */
#include "arch/word_references.h"

#include <string.h>

#include <Zydis/Zydis.h>

#define REGISTERS 16u

/* What general registers hold, where that is known. */
struct follower {
	uint64_t values[REGISTERS];
	bool known[REGISTERS];
	word_read_fn read;
	void *context;
};

/* The number of a general register or of a part of it, REGISTERS: it is none. */
static unsigned number_of(ZydisRegister r)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? (unsigned)ZydisRegisterGetId(whole) : REGISTERS;
}

/* Where an operand in memory is. fixed: known without any register of the function. */
static bool place_of(const struct follower *f, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o,
                     uint64_t address, uint64_t *place, bool *fixed)
{
	const unsigned base = number_of(o->mem.base);

	*fixed = o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_NONE;
	if (o->mem.index != ZYDIS_REGISTER_NONE || o->mem.segment == ZYDIS_REGISTER_FS ||
	    o->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	if (*fixed)
		return ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(z, o, address, place));
	if (base >= REGISTERS || !f->known[base])
		return false;
	*place = f->values[base] + (uint64_t)o->mem.disp.value;
	return true;
}

static void add(struct word_references *r, uint64_t place)
{
	if (!word_references_has(r, place) && r->count < WORD_REFERENCES_MAX)
		r->list[r->count++] = place;
}

/* The value that a move or lea gives to its register. */
static bool value_of(const struct follower *f, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o,
                     uint64_t address, uint64_t *value)
{
	uint64_t place;
	bool fixed;

	if (z->mnemonic == ZYDIS_MNEMONIC_MOV && o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		*value = o->imm.value.u;
		return true;
	}
	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || !place_of(f, z, o, address, &place, &fixed))
		return false;
	if (z->mnemonic == ZYDIS_MNEMONIC_LEA) {
		*value = place;
		return true;
	}
	return z->mnemonic == ZYDIS_MNEMONIC_MOV && fixed && o->size == 64 && f->read(f->context, place, value);
}

static void follow(struct follower *f, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
                   uint64_t address)
{
	const bool gives = z->operand_count_visible == 2 && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER;
	const unsigned to = gives ? number_of(operands[0].reg.value) : REGISTERS;
	uint64_t value = 0;
	bool known = to < REGISTERS && operands[0].size >= 32 && value_of(f, z, &operands[1], address, &value);

	if (z->meta.category == ZYDIS_CATEGORY_CALL)
		memset(f->known, 0, sizeof f->known);
	for (unsigned i = 0; i < z->operand_count; i++) {
		const ZydisDecodedOperand *o = &operands[i];
		unsigned changed = o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		                                   o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE
		                           ? number_of(o->reg.value)
		                           : REGISTERS;
		if (changed < REGISTERS)
			f->known[changed] = false;
	}
	if (known) {
		f->known[to] = true;
		f->values[to] = operands[0].size == 32 ? (uint32_t)value : value;
	}
}

void word_references_find(struct word_references *r, const uint8_t *code, size_t bytes, uint64_t address,
                          word_read_fn read, void *context)
{
	struct follower f = { .read = read, .context = context };
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	ZydisDecoder decoder;

	r->count = 0;
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return;
	for (size_t at = 0; at < bytes; at += z.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, bytes - at, &z, operands)))
			return;
		for (unsigned i = 0; i < z.operand_count_visible; i++) {
			uint64_t place;
			bool fixed;
			if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].size == 64 &&
			    z.mnemonic != ZYDIS_MNEMONIC_LEA &&
			    place_of(&f, &z, &operands[i], address + at, &place, &fixed))
				add(r, place);
		}
		follow(&f, &z, operands, address + at);
	}
}

bool word_references_has(const struct word_references *r, uint64_t address)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->list[i] == address)
			return true;
	return false;
}
