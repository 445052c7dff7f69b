/* SPDX-License-Identifier: MIT */
/*
 * An instruction addresses a GOT entry as disp32(%rip): GOT entry = address of disp32 + disp32 + (4 + size of an
 * immediate after it). All GOT entries of a module lie in a narrow range, so nearly every position is dismissed by
 * one subtraction and comparison of 32-bit words, done for 16 positions at a time; only candidates are looked
 * up.
 *
 * In a program at a fixed address below 2 GiB a GOT entry could also be named by an absolute disp32 or imm32: that
 * counts as "other".
 */
#include "arch/code_scan.h"

#include <emmintrin.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/sorted.h"

#define CHUNK_BYTES (1u << 20)
#define CONTEXT_BYTES 8u /* looked at before a displacement: endbr64, bnd, opcode, ModRM */
#define IMMEDIATE_MAX 4u
#define LOOK_UP_COST 64u /* units of the budget */

static int32_t load32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

/* ---- the set of GOT entries ---- */

static int compare_entries(const void *a, const void *b)
{
	const struct code_entry *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int compare_stubs(const void *a, const void *b)
{
	const struct code_stub *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static size_t entry_index(const struct code_scan *scan, uint64_t address)
{
	size_t low = SORTED_BELOW(scan->entries, scan->entry_count, address, address);

	return low < scan->entry_count && scan->entries[low].address == address ? low : SIZE_MAX;
}

const struct code_entry *code_scan_entry(const struct code_scan *scan, uint64_t address)
{
	size_t i = entry_index(scan, address);

	return i == SIZE_MAX ? NULL : &scan->entries[i];
}

bool code_entry_call_only(const struct code_entry *entry)
{
	return entry->others == 0 && (entry->calls > 0 || entry->jumps > 0);
}

static int add_stub(struct code_scan *scan, uint64_t address, size_t entry, struct err *e)
{
	if (!grow_list(scan->stubs, scan->stub_count))
		return err_set(e, ENOMEM, "no memory for the code scan");
	scan->stubs[scan->stub_count++] = (struct code_stub){ address, (uint32_t)entry };
	return 0;
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
		return add_stub(scan, address + stub_begin(code, at - 2), entry, e);
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
	for (size_t i = 0; i < sizeof after / sizeof after[0] && !r; i++) {
		size_t entry = entry_index(scan, next + after[i] + (uint64_t)(int64_t)displacement);
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
		size_t entry = word - low <= span ? entry_index(scan, word) : SIZE_MAX;
		if (entry != SIZE_MAX)
			scan->entries[entry].others++;
	}
}

/* Displacements at code[from …]; what is before from is only context. */
static int scan_part(struct code_scan *scan, const uint8_t *code, size_t bytes, size_t from, uint64_t address,
                     struct err *e)
{
	if (scan->entry_count == 0 || from >= bytes)
		return 0;
	int r = scan_relative(scan, code, bytes, from, address, e);
	if (!r)
		scan_absolute(scan, code, bytes, from);
	scan->bytes += bytes - from;
	return r;
}

int code_scan_bytes(struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, struct err *e)
{
	int r = scan_part(scan, code, bytes, 0, address, e);

	if (scan->stub_count)
		qsort(scan->stubs, scan->stub_count, sizeof *scan->stubs, compare_stubs);
	return r;
}

/* ---- a module ---- */

static int scan_segment(struct code_scan *scan, const struct module_file *f, uint64_t start, uint64_t bytes,
                        uint8_t *buffer, struct err *e)
{
	/* Chunks overlap by the context before and by the three bytes that a displacement may reach over. */
	for (uint64_t done = 0; done < bytes;) {
		uint64_t before = done < CONTEXT_BYTES ? done : CONTEXT_BYTES;
		uint64_t part = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
		uint64_t after = bytes - done - part < 3 ? bytes - done - part : 3;
		uint64_t address = start + done - before;
		uint64_t looked_up = scan->looked_up, stubs = scan->stub_count;
		int r = module_file_read(f, address, buffer, before + part + after, e);

		if (!r)
			r = scan_part(scan, buffer, before + part + after, before, address, e);
		if (!r)
			r = budget_work(f->tm->budget, LOOK_UP_COST * (scan->looked_up - looked_up), e);
		if (!r)
			r = budget_take(f->tm->budget, 2 * sizeof *scan->stubs * (scan->stub_count - stubs), e);
		if (r)
			return r;
		done += part;
	}
	return 0;
}

static int scan_segments(struct code_scan *scan, const struct module_file *f, struct err *e)
{
	const struct elf_module *m = f->module;
	AUTO_FREE uint8_t *buffer = malloc(CHUNK_BYTES + 2 * CONTEXT_BYTES);

	if (!buffer)
		return err_set(e, ENOMEM, "no memory for the code scan");
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		int r = p->p_type == PT_LOAD && p->p_flags & PF_X
		                ? scan_segment(scan, f, m->bias + p->p_vaddr, p->p_filesz, buffer, e)
		                : 0;
		if (r)
			return r;
	}
	return 0;
}

int code_scan_module(struct code_scan *scan, const struct module_file *f, const uint64_t *entries, size_t count,
                     struct err *e)
{
	struct code_scan out = { 0 };

	out.entries = calloc(count + 1, sizeof *out.entries);
	if (!out.entries)
		return err_set(e, ENOMEM, "no memory for the code scan");
	for (size_t i = 0; i < count; i++)
		out.entries[i].address = entries[i];
	qsort(out.entries, count, sizeof *out.entries, compare_entries);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || out.entries[i].address != out.entries[out.entry_count - 1].address)
			out.entries[out.entry_count++].address = out.entries[i].address;
	int r = count ? scan_segments(&out, f, e) : 0;
	if (r) {
		code_scan_done(&out);
		return r;
	}
	if (out.stub_count)
		qsort(out.stubs, out.stub_count, sizeof *out.stubs, compare_stubs);
	*scan = out;
	return 0;
}

void code_scan_done(struct code_scan *scan)
{
	free(scan->entries);
	free(scan->stubs);
	*scan = (struct code_scan){ 0 };
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

struct branch_to_entry {
	const struct code_scan *scan;
	code_call_fn fn;
	void *context;
};

static void branch_to_entry(void *context, uint64_t destination)
{
	const struct branch_to_entry *b = context;
	uint32_t entry;

	if (code_scan_stub_entry(b->scan, destination, &entry))
		b->fn(b->context, entry);
}

void code_scan_calls(const struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, code_call_fn fn,
                     void *context)
{
	struct branch_to_entry b = { scan, fn, context };

	code_scan_branches(code, bytes, address, branch_to_entry, &b);
	for (size_t at = 0; bytes >= 6 && at <= bytes - 6; at++) {
		if (code[at] != 0xff || (code[at + 1] != 0x15 && code[at + 1] != 0x25))
			continue;
		size_t entry = entry_index(scan, address + at + 6 + (uint64_t)(int64_t)load32(code + at + 2));
		if (entry != SIZE_MAX)
			fn(context, (uint32_t)entry);
	}
}
