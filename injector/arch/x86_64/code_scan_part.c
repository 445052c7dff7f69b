/* SPDX-License-Identifier: MIT */
/*
 * An instruction addresses a GOT entry as disp32(%rip): GOT entry = address of disp32 + disp32 + (4 + size of an
 * immediate after it). Right before the disp32 is the ModRM of the instruction, in each of its encodings, and says so
 * (mod 0, r/m 5): other bytes are no reference, whatever they would lead to. All GOT entries of a module lie in a
 * narrow range, so nearly every position is dismissed by one subtraction and comparison of 32-bit words, done for 16
 * positions at a time; only candidates are looked up.
 *
 * In a program at a fixed address below 2 GiB a GOT entry could also be named by an absolute disp32 or imm32: that
 * counts as "other".
 */
#include "arch/code_scan_part.h"

#include <emmintrin.h>
#include <inttypes.h>
#include <string.h>

#include "base/sorted.h"

#define CONTEXT_BYTES 8u /* looked at before a displacement: endbr64, bnd, opcode, ModRM */
#define IMMEDIATE_MAX 4u

/* What is looked at before a displacement; the three bytes that one may reach over. */
const struct code_scan_reach code_scan_reach = { .before = CONTEXT_BYTES, .after = 3, .look_up_cost = 64 };

static int32_t load32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

bool code_entry_call_only(const struct code_entry *entry)
{
	return entry->others == 0 && (entry->calls > 0 || entry->jumps > 0);
}

/* ---- references ---- */

/* The first byte of a stub whose FF 25 is at code[at]. */
static size_t stub_begin(const uint8_t *code, size_t at)
{
	if (at >= 1 && code[at - 1] == 0xf2)
		at--;
	if (at >= 4 && !memcmp(code + at - 4, "\xf3\x0f\x1e\xfa", 4))
		at -= 4;
	return at;
}

/* Whether code[at] may be what it is relative to: at the beginning of the code nothing is known of what is before. */
static bool follows_modrm(const uint8_t *code, size_t at)
{
	return !at || (code[at - 1] & 0xc7) == 0x05;
}

/* code[at] is a displacement that leads to GOT entry if bytes_behind follow it in its instruction. */
static int note_reference(struct code_scan *scan, const uint8_t *code, size_t at, uint64_t address, size_t entry,
                          unsigned bytes_behind, struct err *e)
{
	struct code_entry *s = &scan->entries[entry];
	bool indirect = bytes_behind == 0 && at >= 2 && code[at - 2] == 0xff;

	if (indirect && code[at - 1] == 0x15) {
		s->calls++;
	} else if (indirect && code[at - 1] == 0x25) {
		s->jumps++;
		return code_scan_add_stub(scan, address + stub_begin(code, at - 2), entry, e);
	} else {
		s->others++;
	}
	return 0;
}

/* A candidate: looks up all ways to read the four bytes at code[at]. */
static int examine(struct code_scan *scan, const uint8_t *code, size_t at, uint64_t address, struct err *e)
{
	static const unsigned after[] = { 0, 1, 2, 4 };
	int32_t displacement = load32(code + at);
	uint64_t next = address + at + 4;
	int r = 0;

	scan->looked_up++;
	if (!follows_modrm(code, at))
		return 0;
	for (size_t i = 0; i < sizeof after / sizeof after[0] && !r; i++) {
		size_t entry = code_scan_index(scan, next + after[i] + (uint64_t)(int64_t)displacement);
		if (entry != SIZE_MAX)
			r = note_reference(scan, code, at, address, entry, after[i], e);
	}
	return r;
}

/*
 * Is any of the 16 words at code[at … at+15], plus its own position, in (low, low + span)? All modulo 2^32.
 */
static bool block_has_candidate(const uint8_t *code, __m128i add, __m128i limit)
{
	const __m128i one = _mm_set1_epi32(1);
	__m128i hits = _mm_setzero_si128();

	/* Lane k of load i is the word at position i + 4 k. */
	add = _mm_add_epi32(add, _mm_setr_epi32(0, 4, 8, 12));
	for (unsigned i = 0; i < 4; i++) {
		__m128i word = _mm_loadu_si128((const __m128i *)(const void *)(code + i));
		hits = _mm_or_si128(hits, _mm_cmpgt_epi32(limit, _mm_add_epi32(word, add)));
		add = _mm_add_epi32(add, one);
	}
	return _mm_movemask_epi8(hits) != 0;
}

static int scan_relative(struct code_scan *scan, const uint8_t *code, size_t bytes, size_t from, uint64_t address,
                         struct err *e)
{
	uint64_t low = scan->entries[0].address - IMMEDIATE_MAX;
	uint64_t span = scan->entries[scan->entry_count - 1].address - low;
	/*
	 * (word + add) as unsigned is below span + 1 exactly for candidates; shifted by 2^31 for the signed
	 * comparison.
	 */
	const __m128i limit = _mm_set1_epi32((int32_t)((uint32_t)(span + 1) + 0x80000000u));
	bool filter = span < UINT32_MAX / 2;
	size_t at = from;
	int r = 0;

	while (filter && !r && bytes - at >= 16 + 4) {
		uint32_t add = (uint32_t)(address + at + 4 - low) + 0x80000000u;
		if (block_has_candidate(code + at, _mm_set1_epi32((int32_t)add), limit))
			for (size_t i = at; i < at + 16 && !r; i++)
				r = examine(scan, code, i, address, e);
		at += 16;
	}
	for (; !r && bytes >= 4 && at <= bytes - 4; at++)
		r = examine(scan, code, at, address, e);
	return r;
}

/* Absolute references: only where GOT entries are below 2^32. */
static void scan_absolute(struct code_scan *scan, const uint8_t *code, size_t bytes, size_t from)
{
	uint32_t low = (uint32_t)scan->entries[0].address;
	uint32_t span = (uint32_t)(scan->entries[scan->entry_count - 1].address - low);

	if (scan->entries[scan->entry_count - 1].address > UINT32_MAX)
		return;
	for (size_t at = from; bytes >= 4 && at <= bytes - 4; at++) {
		uint32_t word = (uint32_t)load32(code + at);
		size_t entry = word - low <= span ? code_scan_index(scan, word) : SIZE_MAX;
		if (entry != SIZE_MAX)
			scan->entries[entry].others++;
	}
}

/* Displacements at code[from …], as far as the bytes go. */
int code_scan_part(struct code_scan *scan, const uint8_t *code, size_t bytes, size_t from, size_t to, uint64_t address,
                   struct err *e)
{
	int r = from < to ? scan_relative(scan, code, bytes, from, address, e) : 0;

	if (!r)
		scan_absolute(scan, code, bytes, from);
	return r;
}

/* ---- bodies ---- */

/* A stub may be entered before or after its endbr64 and bnd: up to 5 bytes from its begin. */
#define STUB_PREFIX_MAX 5u

bool code_scan_stub_entry(const struct code_scan *scan, uint64_t address, uint32_t *entry)
{
	/* The last stub that begins at or before address. */
	size_t low = SORTED_UP_TO(scan->stubs, scan->stub_count, address, address);

	if (low == 0)
		return false;
	const struct code_stub *stub = &scan->stubs[low - 1];
	uint64_t into = address - stub->address;
	if (into > STUB_PREFIX_MAX)
		return false;
	*entry = stub->entry;
	return into == 0 || into == 1 || into == 4 || into == 5;
}

void code_scan_branches(const uint8_t *code, size_t bytes, uint64_t address, code_branch_fn fn, void *context)
{
	for (size_t at = 0; bytes >= 5 && at <= bytes - 5; at++) {
		bool near = code[at] == 0xe8 || code[at] == 0xe9;
		/* jcc rel32 is 0F 8x: conditional tail calls. */
		bool conditional = at > 0 && code[at - 1] == 0x0f && (code[at] & 0xf0) == 0x80;

		if (!near && !conditional)
			continue;
		uint64_t to = address + at + 5 + (uint64_t)(int64_t)load32(code + at + 1);
		if (to < address || to >= address + bytes)
			fn(context, to);
	}
}

void code_scan_loads(const struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, code_call_fn fn,
                     void *context)
{
	for (size_t at = 0; bytes >= 6 && at <= bytes - 6; at++) {
		if (code[at] != 0xff || (code[at + 1] != 0x15 && code[at + 1] != 0x25))
			continue;
		size_t entry = code_scan_index(scan, address + at + 6 + (uint64_t)(int64_t)load32(code + at + 2));
		if (entry != SIZE_MAX)
			fn(context, (uint32_t)entry);
	}
}
