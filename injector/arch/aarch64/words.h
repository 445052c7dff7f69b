/* SPDX-License-Identifier: MIT */
/* Instructions as the architecture's manual (Arm ARM, C4.1) encodes them, as far as references need them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORD_BYTES 4u
#define WORD_LANDING_PAD 0xd503245f  /* bti c */
#define WORD_AUTHENTICATE 0xd503219f /* autia1716: in stubs of a linker that signs their targets */
#define WORD_JUMP_17 0xd61f0220      /* br x17 */
#define WORD_PUSH_16_30 0xa9bf7bf0   /* stp x16, x30, [sp, #-16]! */
#define WORD_SYSTEM_CALL 0xd4000001  /* svc #0 */
#define WORD_RETURN 0xd65f03c0       /* ret */
#define WORD_NOP 0xd503201f
#define WORD_SIGN 0xd503233f    /* paciasp: a landing pad, too */
#define WORD_UNSIGN 0xd50323bf  /* autiasp */
#define WORD_JUMP_16 0xd61f0200 /* br x16 */
#define WORD_LOAD_16 0x58000010 /* ldr x16, at a distance from bit 5 on */
#define STUB_REGISTER 16u
#define STACK_POINTER 31u

static inline uint32_t word_at(const uint8_t *code)
{
	uint32_t word;

	memcpy(&word, code, sizeof word);
	return word;
}

static inline void word_put(uint8_t *code, uint32_t word)
{
	memcpy(code, &word, sizeof word);
}

/* The bits first … last of a word, the highest one being the sign. */
static inline int64_t word_signed(uint32_t word, unsigned first, unsigned last)
{
	return (int64_t)((uint64_t)word << (63 - last)) >> (63 - last + first);
}

static inline unsigned word_to(uint32_t word)
{
	return word & 31;
}

static inline unsigned word_from(uint32_t word)
{
	return word >> 5 & 31;
}

/* b, bl */
static inline bool word_is_jump(uint32_t word, bool *calls)
{
	*calls = word >> 31;
	return (word & 0x7c000000) == 0x14000000;
}

/* b.cond, cbz, tbz: where to, from the instruction on. */
static inline bool word_is_condition(uint32_t word, int64_t *distance)
{
	const bool plain = (word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000;

	*distance = plain ? word_signed(word, 5, 23) * 4 : word_signed(word, 5, 18) * 4;
	return plain || (word & 0x7e000000) == 0x36000000;
}

/* A branch to an address in it. */
static inline bool word_branch(uint32_t word, uint64_t address, uint64_t *target)
{
	int64_t distance;
	bool calls;

	if (word_is_jump(word, &calls))
		distance = word_signed(word, 0, 25) * 4;
	else if (!word_is_condition(word, &distance))
		return false;
	*target = address + (uint64_t)distance;
	return true;
}

/* br, blr, ret and those that authenticate; what it does: bits 22 … 21: 0 jumps, 1 calls, 2 returns */
static inline bool word_is_indirect(uint32_t word, unsigned *what)
{
	*what = word >> 21 & 3;
	return (word & 0xfe9ff000) == 0xd61f0000 && *what < 3;
}

/* adrp, adr: the address that it makes. */
static inline bool word_makes_address(uint32_t word, uint64_t address, bool *page, uint64_t *made)
{
	const int64_t distance = (int64_t)((uint64_t)word_signed(word, 5, 23) << 2 | (word >> 29 & 3));

	*page = word >> 31;
	*made = *page ? (address & ~0xfffull) + ((uint64_t)distance << 12) : address + (uint64_t)distance;
	return (word & 0x1f000000) == 0x10000000;
}

/* add of a number, without flags */
static inline bool word_adds(uint32_t word, uint64_t *number)
{
	*number = (uint64_t)(word >> 10 & 0xfff) << (word >> 22 & 1 ? 12 : 0);
	return (word & 0xff800000) == 0x91000000;
}

/* movz: mov of a number */
static inline bool word_moves_number(uint32_t word, uint64_t *number)
{
	*number = (uint64_t)(word >> 5 & 0xffff) << 16 * (word >> 21 & 3);
	return (word & 0x7f800000) == 0x52800000;
}

/* mov of a whole register; *number: to it, then from it */
static inline bool word_moves_register(uint32_t word, unsigned *number)
{
	if ((word & 0xffe0ffe0) != 0xaa0003e0)
		return false;
	*number = word >> 16 & 31;
	return true;
}

/* ldr and prfm of what is at a distance from the instruction. */
static inline bool word_loads_near(uint32_t word, uint64_t address, uint64_t *place)
{
	*place = address + (uint64_t)(word_signed(word, 5, 23) * 4);
	return (word & 0x3b000000) == 0x18000000;
}

/* ldp, stp, of general registers or others */
static inline bool word_is_pair(uint32_t word)
{
	return (word & 0x3a000000) == 0x28000000;
}

/* A load or store at a number from the register word_from(): how far, and how many bytes it may be. */
struct word_access {
	int64_t distance;
	unsigned bytes;
	bool loads;
	bool vector;
};

/* ldr, str and kin: a number of 12 bits, scaled by the size; the shorter ones of 9 bits, before and after the access
 * too; pairs. */
static inline bool word_accesses(uint32_t word, struct word_access *access)
{
	const bool vector = word >> 26 & 1;
	unsigned scale = word >> 30;

	access->vector = vector;
	if ((word & 0x3b000000) == 0x39000000 || (word & 0x3b200000) == 0x38000000) {
		const bool scaled = word >> 24 & 1;
		if (vector && word >> 23 & 1)
			scale += 4; /* of 16 bytes */
		access->bytes = 1u << scale;
		access->distance = scaled ? (int64_t)(word >> 10 & 0xfff) << scale : word_signed(word, 12, 20);
		access->loads = (word >> 22 & 3) != 0;
		return true;
	}
	if (word_is_pair(word)) {
		scale = vector ? 2 + scale : 2 + (scale >> 1);
		access->bytes = 2u << scale;
		access->distance = word_signed(word, 15, 21) * (1 << scale);
		access->loads = word >> 22 & 1;
		return true;
	}
	return false;
}

/* May it change the general register? Not told: what a call changes. */
static inline bool word_changes(uint32_t word, unsigned number)
{
	struct word_access access;

	if (word_accesses(word, &access)) {
		const bool pair = word_is_pair(word);
		/* Before or after the access the base is moved. */
		const bool moves = pair ? word >> 23 & 1 : !(word >> 24 & 1) && word >> 10 & 1;
		if (moves && word_from(word) == number)
			return true;
		return access.loads && !access.vector &&
		       (word_to(word) == number || (pair && (word >> 10 & 31) == number));
	}
	if ((word & 0x0a000000) == 0x08000000) /* other loads and stores */
		return word >> 22 & 1 && word_to(word) == number;
	if ((word & 0x1c000000) == 0x14000000) /* branches, system registers */
		return (word & 0xfff00000) == 0xd5300000 && word_to(word) == number;
	return word_to(word) == number;
}
