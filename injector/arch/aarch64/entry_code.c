/* SPDX-License-Identifier: MIT */
/*
 * The jump is one instruction, so one is displaced: no thread stands in the middle, and there are no islands. It is at
 * the entry, or behind a landing pad. paciasp is one, too: the way to the hook undoes it, and the copy begins with it.
 * A uprobe on the entry takes the call past the hook, and harms nothing: what the kernel runs in place of its
 * breakpoint, and writes back, is the one instruction that the file has.
 */
#include "arch/entry_code.h"

#include <string.h>

#include "arch/aarch64/words.h"

#define SIGNING 30u /* as the register of an undo: x30 is no longer signed */

static uint32_t encode_jump(int64_t distance)
{
	return 0x14000000 | ((uint32_t)(distance / WORD_BYTES) & 0x3ffffff);
}

static int put_jump(uint8_t *code, uint64_t at, uint64_t target, struct err *e)
{
	const int64_t distance = (int64_t)(target - at);

	if (distance < -(1 << 27) || distance >= 1 << 27 || distance % WORD_BYTES)
		return err_set(e, ERANGE, "0x%llx is more than 128 MiB away from 0x%llx", (unsigned long long)target,
		               (unsigned long long)at);
	word_put(code, encode_jump(distance));
	return 0;
}

static bool is_pad(const struct entry_code_function *f, bool *signs)
{
	struct instruction in;

	*signs = word_at(f->code) == WORD_SIGN;
	return instruction_read(&in, f->code, f->bytes, f->address) && in.landing_pad;
}

/* Why an instruction cannot be run elsewhere; NULL: it can. */
static const char *fixed(const uint8_t *code, uint64_t address)
{
	const uint32_t word = word_at(code);
	struct instruction in;
	uint64_t place;

	(void)instruction_read(&in, code, WORD_BYTES, address);
	if (in.flow == FLOW_CALL)
		return "a call is among its first instructions";
	if (in.flow == FLOW_TRAP || (word & 0xff000000) == 0xd4000000)
		return "a system call or a trap is among its first instructions";
	return word_loads_near(word, address, &place) ? "its first instructions read what lies beside them" : NULL;
}

/* Does a branch of code, but for calls of the entry, lead to the entry, or to where the jump is written? */
static bool leads_back(const uint8_t *code, size_t bytes, uint64_t address, const struct entry_code_plan *p,
                       uint64_t entry, bool from_itself)
{
	for (size_t at = 0; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
		const uint32_t word = word_at(code + at);
		uint64_t target;
		bool calls;

		if (!word_branch(word, address + at, &target))
			continue;
		calls = word_is_jump(word, &calls) && calls;
		if ((target == p->write_at && target != entry) || (from_itself && !calls && target == entry))
			return true;
	}
	return false;
}

int entry_code_plan_make(struct entry_code_plan *plan, const struct entry_code_function *f, struct err *e)
{
	struct entry_code_plan p = { .kind = ENTRY_ONE, .write_at = f->address };
	const char *why;
	bool signs;

	if (f->bytes == 0)
		return err_set(e, ENOTSUP, "where it ends is not known");
	if (f->bytes > ENTRY_BODY_MAX)
		return err_set(e, ENOTSUP, "it is longer than %u bytes", ENTRY_BODY_MAX);
	const bool pad = f->bytes >= WORD_BYTES && is_pad(f, &signs);
	p.write_at += pad ? WORD_BYTES : 0;
	p.code_bytes = pad ? 2 * WORD_BYTES : WORD_BYTES;
	if (f->bytes < p.code_bytes || f->address % WORD_BYTES)
		return err_set(e, ENOTSUP, "it is shorter than a jump");
	p.write_bytes = p.displaced_bytes = WORD_BYTES;
	p.displaced_count = 1;
	if (pad && signs) {
		p.repeated_bytes = WORD_BYTES;
		p.undo = (struct instruction_undo){ SIGNING, 1 };
	}
	why = fixed(f->code + (p.write_at - f->address), p.write_at);
	if (why)
		return err_set(e, ENOTSUP, "%s", why);
	if (leads_back(f->code, f->bytes, f->address, &p, f->address, true))
		return err_set(e, ENOTSUP, "it jumps back to its own entry");
	if ((f->before &&
	     leads_back(f->before, f->before_bytes, f->address - f->before_bytes, &p, f->address, false)) ||
	    (f->entered && f->entered == p.write_at))
		return err_set(e, ENOTSUP, "other code jumps into its first instructions");
	memcpy(p.code, f->code, p.code_bytes);
	*plan = p;
	return 0;
}

int entry_code_patch_make(struct entry_code_patch *patch, const struct entry_code_plan *plan, uint64_t hook,
                          struct err *e)
{
	*patch = (struct entry_code_patch){ 0 };
	return put_jump(patch->jump, plan->write_at, hook, e);
}

/* Removes the signature of the return address. */
void entry_code_undo(uint8_t code[ENTRY_UNDO_BYTES], const struct instruction_undo *undo)
{
	word_put(code, undo->number == SIGNING ? WORD_UNSIGN : WORD_NOP);
}

/* By x16, which calls may change; and the address behind it. */
void entry_code_far_jump(uint8_t code[ENTRY_FAR_JUMP_BYTES], uint64_t target)
{
	word_put(code, WORD_LOAD_16 | 2 << 5);
	word_put(code + WORD_BYTES, WORD_JUMP_16);
	memcpy(code + 2 * WORD_BYTES, &target, sizeof target);
}

/* A branch with a condition: to behind the jump that follows. */
static int put_condition(uint8_t *code, uint32_t word, uint64_t at, uint64_t target, uint64_t next, struct err *e)
{
	const bool bit = (word & 0x7e000000) == 0x36000000;

	word_put(code, (word & ~((bit ? 0x3fffu : 0x7ffffu) << 5)) | 2 << 5);
	const int rc = put_jump(code + WORD_BYTES, at + WORD_BYTES, next, e);
	return rc ?: put_jump(code + 2 * WORD_BYTES, at + 2 * WORD_BYTES, target, e);
}

/* The page of the address, and its place in that. */
static int put_address(uint8_t *code, uint32_t word, uint64_t at, uint64_t made, struct err *e)
{
	const int64_t pages = (int64_t)((made >> 12) - (at >> 12));
	const uint32_t to = word_to(word);

	if (pages != word_signed((uint32_t)pages & 0x1fffff, 0, 20))
		return err_set(e, ERANGE, "0x%llx is more than 4 GiB away", (unsigned long long)made);
	word_put(code, 0x90000000 | ((uint32_t)pages & 3) << 29 | ((uint32_t)(pages >> 2) & 0x7ffff) << 5 | to);
	word_put(code + WORD_BYTES, 0x91000000 | (uint32_t)(made & 0xfff) << 10 | to << 5 | to);
	return 0;
}

/* The displaced instruction and, where it goes on behind itself, the jump back. The words, or -ERANGE. */
static int put_displaced(uint8_t *code, uint32_t word, uint64_t from, uint64_t at, struct err *e)
{
	const uint64_t next = from + WORD_BYTES;
	int64_t distance;
	uint64_t place;
	bool flag;

	if (word_is_jump(word, &flag)) {
		(void)word_branch(word, from, &place);
		return put_jump(code, at, place, e) ?: 1;
	}
	if (word_is_condition(word, &distance))
		return put_condition(code, word, at, from + (uint64_t)distance, next, e) ?: 3;
	if (word_makes_address(word, from, &flag, &place)) {
		const int rc = put_address(code, word, at, place, e);
		return rc ?: put_jump(code + 2 * WORD_BYTES, at + 2 * WORD_BYTES, next, e) ?: 3;
	}
	word_put(code, word);
	return put_jump(code + WORD_BYTES, at + WORD_BYTES, next, e) ?: 2;
}

int entry_code_copy_make(struct entry_code_copy *copy, const struct entry_code_plan *plan, uint64_t at, struct err *e)
{
	const uint8_t *displaced = plan->code + plan->code_bytes - WORD_BYTES;
	struct entry_code_copy out = { .bytes = plan->repeated_bytes };

	memcpy(out.code, displaced - plan->repeated_bytes, plan->repeated_bytes);
	const int words = put_displaced(out.code + out.bytes, word_at(displaced), plan->write_at, at + out.bytes, e);
	if (words < 0)
		return words;
	out.bytes += (uint8_t)words * WORD_BYTES;
	*copy = out;
	return 0;
}
