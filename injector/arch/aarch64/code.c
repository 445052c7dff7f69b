/* SPDX-License-Identifier: MIT */
#include "arch/code.h"

#include <sys/syscall.h>

#include "arch/aarch64/made.h"

#define NEAR_BYTES 128

void code_references(const uint8_t *code, size_t bytes, uint64_t address, bool absolute, code_reference_fn fn,
                     void *context)
{
	struct made made = { 0 };

	(void)absolute;
	for (size_t at = 0; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
		const uint32_t word = word_at(code + at);
		const uint64_t here = address + at;
		uint64_t to;
		bool calls, whole;

		if (word_branch(word, here, &to))
			fn(context,
			   word_is_jump(word, &calls) && calls          ? REFERENCE_CALL
			   : to - here + NEAR_BYTES < 2ull * NEAR_BYTES ? REFERENCE_NEAR_JUMP
			                                                : REFERENCE_JUMP,
			   to);
		else if (made_refers(&made, word, here, &to, &whole))
			fn(context, REFERENCE_DATA, to);
	}
}

/* add of a word that is extended: the distance from a table was added to its address. */
static bool follows_table(uint32_t before, uint32_t jump)
{
	return (before & 0xffe00000) == 0x8b200000 && word_to(before) == word_from(jump);
}

bool code_jumps_by_pointer(const uint8_t *code, size_t bytes, uint64_t address, const struct code_extent *module)
{
	(void)address, (void)module;
	for (size_t at = 0; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
		const uint32_t word = word_at(code + at);
		unsigned what;
		if (word_is_indirect(word, &what) && what == 0 &&
		    !(at && follows_table(word_at(code + at - WORD_BYTES), word)))
			return true;
	}
	return false;
}

bool code_maps_memory(const uint8_t *code, size_t bytes)
{
	bool number = false, call = false;

	for (size_t at = 0; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
		const uint32_t word = word_at(code + at);
		number |= word == (0xd2800008 | SYS_mmap << 5) || word == (0x52800008 | SYS_mmap << 5);
		call |= word == WORD_SYSTEM_CALL;
	}
	return number && call;
}

/* The register was loaded by one of the instructions before. A descriptor's function comes right behind add x0, x0. */
#define LOOK_BACK 16u
bool code_calls_what_was_read(const uint8_t *code, size_t at)
{
	const unsigned number = word_from(word_at(code + at));

	if (at >= WORD_BYTES && (word_at(code + at - WORD_BYTES) & 0xff8003ff) == 0x91000000)
		return false;
	for (unsigned i = 1; i <= LOOK_BACK && i * WORD_BYTES <= at; i++) {
		const uint32_t word = word_at(code + at - i * WORD_BYTES);
		struct word_access access;
		uint64_t target;
		unsigned what;

		if (word_branch(word, 0, &target) || word_is_indirect(word, &what))
			return false;
		if (word_changes(word, number))
			return word_accesses(word, &access) && access.loads && !access.vector &&
			       word_from(word) != STACK_POINTER;
	}
	return false;
}

/* adrp x16; ldr x17; add x16; br x17. The words of it, from the first on. */
bool code_stub_word(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *word)
{
	const size_t at = bytes >= WORD_BYTES && word_at(code) == WORD_LANDING_PAD ? WORD_BYTES : 0;
	struct word_access access;
	uint64_t made, number;
	bool page;

	if (at + 4 * WORD_BYTES > bytes)
		return false;
	const uint32_t first = word_at(code + at), load = word_at(code + at + 4), add = word_at(code + at + 8);
	uint32_t jump = word_at(code + at + 12);
	if (jump == WORD_AUTHENTICATE && at + 5 * WORD_BYTES <= bytes)
		jump = word_at(code + at + 16);
	if (!word_makes_address(first, address + at, &page, &made) || !page || word_to(first) != STUB_REGISTER ||
	    (load & 0xffc003ff) != 0xf9400211 || !word_accesses(load, &access) || !word_adds(add, &number) ||
	    (add & 0x3ff) != (STUB_REGISTER << 5 | STUB_REGISTER) || number != (uint64_t)access.distance ||
	    jump != WORD_JUMP_17)
		return false;
	*word = made + number;
	return true;
}

static bool is_first_stub(const uint8_t *code, size_t bytes)
{
	const size_t at = bytes >= WORD_BYTES && word_at(code) == WORD_LANDING_PAD ? WORD_BYTES : 0;
	uint64_t word;

	return at + WORD_BYTES <= bytes && word_at(code + at) == WORD_PUSH_16_30 &&
	       code_stub_word(code + at + WORD_BYTES, bytes - at - WORD_BYTES, 0, &word);
}

bool code_is_stub(const uint8_t *code, size_t bytes)
{
	uint64_t word;

	return code_stub_word(code, bytes, 0, &word) || is_first_stub(code, bytes);
}

/* All entries lead to the first stub, which knows by a register which of them was used. */
bool code_lazy_stub(const uint8_t code[LAZY_STUB_BYTES], uint32_t *number)
{
	*number = LAZY_STUB_ANY;
	return is_first_stub(code, LAZY_STUB_BYTES);
}

/* adrp x0; add x0; ret, or adr x0; ret */
bool code_returns_address(const uint8_t code[RETURNS_ADDRESS_BYTES], uint64_t address, uint64_t *returned)
{
	size_t at = word_at(code) == WORD_LANDING_PAD ? WORD_BYTES : 0;
	uint64_t number = 0;
	bool page;

	if (!word_makes_address(word_at(code + at), address + at, &page, returned) || word_to(word_at(code + at)) != 0)
		return false;
	at += WORD_BYTES;
	if (page && (!word_adds(word_at(code + at), &number) || (word_at(code + at) & 0x3ff) != 0))
		return false;
	*returned += number;
	at += page ? WORD_BYTES : 0;
	return word_at(code + at) == WORD_RETURN;
}

/* adrp x; ldr w0 from there; ret */
bool code_returns_number(const uint8_t code[RETURNS_ADDRESS_BYTES], uint64_t address, uint64_t *place)
{
	size_t at = word_at(code) == WORD_LANDING_PAD ? WORD_BYTES : 0;
	struct made made = { 0 };
	bool whole;

	made_refers(&made, word_at(code + at), address + at, place, &whole);
	at += WORD_BYTES;
	return (word_at(code + at) & 0xffc0001f) == 0xb9400000 &&
	       made_refers(&made, word_at(code + at), address + at, place, &whole) && !whole &&
	       word_at(code + at + WORD_BYTES) == WORD_RETURN;
}

void code_distances(const uint8_t *code, size_t bytes, uint64_t address, const struct code_extent *wanted,
                    code_distance_fn fn, void *context)
{
	const uint64_t span = wanted->end - wanted->start;
	struct made made = { 0 };

	for (size_t at = (0 - address) % WORD_BYTES; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
		const uint32_t word = word_at(code + at);
		uint64_t to;
		bool whole;

		if (word_branch(word, address + at, &to)) {
			if (to - wanted->start <= span)
				fn(context, DISTANCE_BRANCH, at, to);
		} else if (made_refers(&made, word, address + at, &to, &whole) && to - wanted->start <= span) {
			fn(context, whole ? DISTANCE_ADDRESS : DISTANCE_OTHER, at, to);
		}
	}
}
