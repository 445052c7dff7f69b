/* SPDX-License-Identifier: MIT */
/* Intel SDM volume 2: E8 and E9 rel32, 0F 8x rel32, EB and 7x rel8; ModRM with mod 00 and r/m 101 is disp32(%rip). */
#include "arch/code.h"

#include <string.h>
#include <sys/syscall.h>

static int64_t load32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

void code_references(const uint8_t *code, size_t bytes, uint64_t address, bool absolute, code_reference_fn fn,
                     void *context)
{
	for (size_t at = 1; at < bytes; at++) {
		const uint8_t before = code[at - 1];
		if (before == 0xeb || (before & 0xf0) == 0x70)
			fn(context, REFERENCE_NEAR_JUMP, address + at + 1 + (uint64_t)(int64_t)(int8_t)code[at]);
		if (at + 4 > bytes)
			continue;
		uint64_t next = address + at + 4;
		uint64_t to = next + (uint64_t)load32(code + at);

		if (before == 0xe8)
			fn(context, REFERENCE_CALL, to);
		else if (before == 0xe9 || (at >= 2 && code[at - 2] == 0x0f && (before & 0xf0) == 0x80))
			fn(context, REFERENCE_JUMP, to);
		if ((before & 0xc7) == 0x05) /* an immediate may follow: of 0, 1, 2 or 4 bytes */
			for (unsigned i = 0; i <= 4; i += i < 2 ? 1 : 2)
				fn(context, REFERENCE_DATA, to + i);
		if (absolute && load32(code + at) > 0)
			fn(context, REFERENCE_DATA, (uint64_t)load32(code + at));
	}
}

/* add %reg,%reg in front: the distance from a table was added to its address. Perhaps with notrack between. */
static bool follows_table(const uint8_t *code, size_t at)
{
	if (at >= 1 && code[at - 1] == 0x41) /* %r8 and up */
		at--;
	if (at >= 1 && code[at - 1] == 0x3e)
		at--;
	return at >= 3 && (code[at - 3] & 0xf8) == 0x48 && (code[at - 2] == 0x01 || code[at - 2] == 0x03) &&
	       code[at - 1] >= 0xc0;
}

/* Are the bytes at the end of, or in, a distance of an instruction before that leads into the module? */
static bool is_operand(const uint8_t *code, size_t at, size_t bytes, uint64_t address, const struct code_extent *module)
{
	for (size_t back = 1; back <= 4 && back < at; back++) {
		const uint8_t *operand = code + at - back + 1;
		const uint8_t before = operand[-1];
		if (at - back + 5 > bytes)
			continue;
		uint64_t to = address + (uint64_t)(operand - code) + 4 + (uint64_t)load32(operand);
		bool branch = before == 0xe8 || before == 0xe9 ||
		              ((before & 0xf0) == 0x80 && operand - code >= 2 && operand[-2] == 0x0f);
		bool relative = (before & 0xc7) == 0x05 && operand - code >= 2;
		if ((branch || relative) && to >= module->start && to < module->end)
			return true;
	}
	/* REX 81 FF imm32: compares %rdi or %r15 with a number. */
	if (at >= 2 && code[at - 1] == 0x81 && (code[at - 2] & 0xf0) == 0x40)
		return true;
	/* The end of a small negative number; 64 to 67 are prefixes of what follows. */
	return at >= 2 && code[at - 1] == 0xff && code[at - 2] == 0xff && (code[at + 1] & 0xfc) == 0x64;
}

bool code_jumps_by_pointer(const uint8_t *code, size_t bytes, uint64_t address, const struct code_extent *module)
{
	for (size_t at = 0; at + 2 <= bytes; at++) {
		if (code[at] != 0xff || (code[at + 1] & 0x38) != 0x20 || is_operand(code, at, bytes, address, module))
			continue;
		const uint8_t mode = code[at + 1] & 0xc0, operand = code[at + 1] & 7;
		bool table = mode == 0xc0 ? follows_table(code, at)
		                          : mode == 0 && operand == 4 && at + 3 <= bytes && (code[at + 2] & 7) == 5;
		if (!table)
			return true;
	}
	return false;
}

bool code_maps_memory(const uint8_t *code, size_t bytes)
{
	static const uint8_t number[] = { 0xb8, SYS_mmap, 0, 0, 0 }; /* mov $9,%eax */
	static const uint8_t call[] = { 0x0f, 0x05 };

	return memmem(code, bytes, number, sizeof number) && memmem(code, bytes, call, sizeof call);
}

static const uint8_t landing_pad[] = { 0xf3, 0x0f, 0x1e, 0xfa }; /* endbr64 */

/* Where its FF 25 or FF 35 is. */
static bool stub_jump(const uint8_t *code, size_t bytes, size_t *at)
{
	*at = bytes >= sizeof landing_pad && memcmp(code, landing_pad, sizeof landing_pad) == 0 ? sizeof landing_pad
	                                                                                        : 0;
	if (*at < bytes && code[*at] == 0xf2)
		++*at;
	return *at + 6 <= bytes && code[*at] == 0xff && (code[*at + 1] == 0x25 || code[*at + 1] == 0x35);
}

bool code_is_stub(const uint8_t *code, size_t bytes)
{
	size_t at;

	return stub_jump(code, bytes, &at);
}

bool code_stub_word(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *word)
{
	size_t at;

	if (!stub_jump(code, bytes, &at) || code[at + 1] != 0x25)
		return false;
	*word = address + at + 6 + (uint64_t)load32(code + at + 2);
	return true;
}

static const uint8_t *behind_landing_pad(const uint8_t *code)
{
	return memcmp(code, landing_pad, sizeof landing_pad) ? code : code + sizeof landing_pad;
}

/* push $number */
bool code_lazy_stub(const uint8_t code[LAZY_STUB_BYTES], uint32_t *number)
{
	const uint8_t *push = behind_landing_pad(code);

	memcpy(number, push + 1, sizeof *number);
	return push[0] == 0x68;
}

/* lea distance(%rip),%rax; ret */
bool code_returns_address(const uint8_t code[RETURNS_ADDRESS_BYTES], uint64_t address, uint64_t *returned)
{
	const uint8_t *lea = behind_landing_pad(code);

	*returned = address + (uint64_t)(lea - code) + 7 + (uint64_t)load32(lea + 3);
	return lea[0] == 0x48 && lea[1] == 0x8d && lea[2] == 0x05 && lea[7] == 0xc3;
}

/* mov distance(%rip),%eax; ret */
bool code_returns_number(const uint8_t code[RETURNS_ADDRESS_BYTES], uint64_t address, uint64_t *place)
{
	const uint8_t *mov = behind_landing_pad(code);

	*place = address + (uint64_t)(mov - code) + 6 + (uint64_t)load32(mov + 2);
	return mov[0] == 0x8b && mov[1] == 0x05 && mov[6] == 0xc3;
}

static enum distance_kind distance_kind(const uint8_t *at)
{
	if (at[-1] == 0xe8 || at[-1] == 0xe9 || (at[-2] == 0x0f && (at[-1] & 0xf0) == 0x80))
		return DISTANCE_BRANCH;
	/* lea: REX.W 8D, mod 0, r/m 5. */
	return (at[-1] & 0xc7) == 0x05 && at[-2] == 0x8d && (at[-3] & 0xf8) == 0x48 ? DISTANCE_ADDRESS : DISTANCE_OTHER;
}

void code_distances(const uint8_t *code, size_t bytes, uint64_t address, const struct code_extent *wanted,
                    code_distance_fn fn, void *context)
{
	const uint64_t span = wanted->end - wanted->start;

	for (size_t at = DISTANCE_BEFORE; at + DISTANCE_BYTES <= bytes; at++) {
		uint64_t target = address + at + DISTANCE_BYTES + (uint64_t)load32(code + at);
		if (target - wanted->start <= span)
			fn(context, distance_kind(code + at), at, target);
	}
}

bool code_calls_what_was_read(const uint8_t *code, size_t at)
{
	(void)code, (void)at;
	return false;
}
