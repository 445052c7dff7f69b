/* SPDX-License-Identifier: MIT */
/*
 * A GOT entry is addressed by two instructions: adrp makes the address of a page in a register, a load adds the rest
 * (up to 32 KiB). Linkers make of them the stubs of the PLT, in one form, for the entries of functions that are called
 * (x16 and x17, which they leave with the entry's address and value, are dead at the entry of a function: AAPCS64
 * 6.1.1). Whatever else the page of an entry may be made for is followed forward, in the order of the instructions,
 * until the register holds something else: a load of the entry, or its address, is "other". The form adrp, ldr, blr of
 * -fno-plt is a load, too.
 */
#include "arch/code_scan.h"

#include <stdlib.h>

#include "arch/aarch64/words.h"
#include "arch/code_references.h"
#include "base/cleanup.h"
#include "base/grow.h"
#include "base/sorted.h"

#define CHUNK_BYTES (1u << 20)
#define FOLLOW_WORDS 1024u /* behind what makes the address */
#define FOLLOW_BYTES (FOLLOW_WORDS * WORD_BYTES)
#define REACH (32768u + 4096u) /* of loads from a page, perhaps with the rest added before */
#define CALLEE_SAVED 19u       /* registers from this one on are kept over calls */

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
	return entry->others == 0 && entry->jumps > 0;
}

/* ---- references ---- */

/* One that is no jump of a stub, to all entries of these bytes. */
static void note_other(struct code_scan *scan, uint64_t place, unsigned bytes)
{
	for (uint64_t at = place & ~7ull; at < place + bytes; at += 8) {
		size_t entry = entry_index(scan, at);
		if (entry != SIZE_MAX)
			scan->entries[entry].others++;
	}
}

/* What makes the address of a page may be the begin of a stub. */
static int note_stub(struct code_scan *scan, const uint8_t *code, size_t at, size_t bytes, uint64_t address,
                     bool *is_stub, struct err *e)
{
	uint64_t word;

	*is_stub = code_stub_word(code + at, bytes - at, address + at, &word);
	const size_t entry = *is_stub ? entry_index(scan, word) : SIZE_MAX;
	if (entry == SIZE_MAX)
		return 0;
	if (!grow_list(scan->stubs, scan->stub_count))
		return err_set(e, ENOMEM, "no memory for the code scan");
	scan->entries[entry].jumps++;
	const bool pad = at >= WORD_BYTES && word_at(code + at - WORD_BYTES) == WORD_LANDING_PAD;
	scan->stubs[scan->stub_count++] = (struct code_stub){ address + at - (pad ? WORD_BYTES : 0), (uint32_t)entry };
	return 0;
}

/* What the code does with the address `made` in a register, from `at` on. */
static void follow(struct code_scan *scan, const uint8_t *code, size_t at, size_t bytes, unsigned number, uint64_t made)
{
	const size_t end = bytes - at < FOLLOW_BYTES ? bytes : at + FOLLOW_BYTES;

	for (; at + WORD_BYTES <= end; at += WORD_BYTES) {
		const uint32_t word = word_at(code + at);
		struct word_access access;
		uint64_t added;
		unsigned what;
		bool calls;

		scan->looked_up++;
		if (word_from(word) == number && word_accesses(word, &access))
			note_other(scan, made + (uint64_t)access.distance, access.bytes);
		else if (word_from(word) == number && word_adds(word, &added))
			note_other(scan, made + added, 1);
		if (word_changes(word, number))
			return;
		calls = (word_is_jump(word, &calls) && calls) || (word_is_indirect(word, &what) && what == 1);
		if (calls && number < CALLEE_SAVED)
			return;
	}
}

/* Of the instructions from `from` on, below `to`; those up to `bytes` are only followed. */
static int scan_part(struct code_scan *scan, const uint8_t *code, size_t bytes, size_t from, size_t to,
                     uint64_t address, struct err *e)
{
	if (!scan->entry_count)
		return 0;
	const uint64_t first = scan->entries[0].address, span = scan->entries[scan->entry_count - 1].address - first;
	int r = 0;

	for (size_t at = from + (0 - (address + from)) % WORD_BYTES; at + WORD_BYTES <= to && !r; at += WORD_BYTES) {
		const uint32_t word = word_at(code + at);
		uint64_t made;
		bool page, is_stub = false;

		if (word_makes_address(word, address + at, &page, &made)) {
			if (made + REACH - first > span + REACH)
				continue;
			r = note_stub(scan, code, at, bytes, address, &is_stub, e);
			if (!page)
				note_other(scan, made, 1);
			if (!is_stub && !r)
				follow(scan, code, at + WORD_BYTES, bytes, word_to(word), made);
		} else if (word_loads_near(word, address + at, &made)) {
			note_other(scan, made, 16);
		}
	}
	scan->bytes += to - from;
	return r;
}

int code_scan_bytes(struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, struct err *e)
{
	int r = scan_part(scan, code, bytes, 0, bytes, address, e);

	if (scan->stub_count)
		qsort(scan->stubs, scan->stub_count, sizeof *scan->stubs, compare_stubs);
	return r;
}

/* ---- a module ---- */

static int scan_segment(struct code_scan *scan, const struct module_file *f, uint64_t start, uint64_t bytes,
                        uint8_t *buffer, struct err *e)
{
	/* Chunks overlap by a landing pad before and by what is followed behind. */
	for (uint64_t done = 0; done < bytes;) {
		uint64_t before = done ? WORD_BYTES : 0;
		uint64_t part = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
		uint64_t after = bytes - done - part < FOLLOW_BYTES ? bytes - done - part : FOLLOW_BYTES;
		uint64_t address = start + done - before;
		uint64_t looked_up = scan->looked_up, stubs = scan->stub_count;
		int r = module_file_read(f, address, buffer, before + part + after, e);

		if (!r)
			r = scan_part(scan, buffer, before + part + after, before, before + part, address, e);
		if (!r)
			r = budget_work(f->tm->budget, scan->looked_up - looked_up, e);
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
	AUTO_FREE uint8_t *buffer = malloc(WORD_BYTES + CHUNK_BYTES + FOLLOW_BYTES);

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

/* A stub may be entered before or behind its landing pad. */
bool code_scan_stub_entry(const struct code_scan *scan, uint64_t address, uint32_t *entry)
{
	/* The last stub that begins at or before address. */
	size_t low = SORTED_UP_TO(scan->stubs, scan->stub_count, address, address);

	if (low == 0 || address - scan->stubs[low - 1].address > WORD_BYTES)
		return false;
	*entry = scan->stubs[low - 1].entry;
	return address % WORD_BYTES == 0;
}

void code_scan_branches(const uint8_t *code, size_t bytes, uint64_t address, code_branch_fn fn, void *context)
{
	uint64_t to;

	for (size_t at = 0; at + WORD_BYTES <= bytes; at += WORD_BYTES)
		if (word_branch(word_at(code + at), address + at, &to) && to - address >= bytes)
			fn(context, to);
}

struct body {
	const struct code_scan *scan;
	code_call_fn fn;
	void *context;
};

static void branch_to_entry(void *context, uint64_t destination)
{
	const struct body *b = context;
	uint32_t entry;

	if (code_scan_stub_entry(b->scan, destination, &entry))
		b->fn(b->context, entry);
}

static void load_of_entry(void *context, enum reference_kind kind, uint64_t destination)
{
	const struct body *b = context;
	const size_t entry = kind == REFERENCE_DATA ? entry_index(b->scan, destination) : SIZE_MAX;

	if (entry != SIZE_MAX)
		b->fn(b->context, (uint32_t)entry);
}

void code_scan_calls(const struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, code_call_fn fn,
                     void *context)
{
	struct body b = { scan, fn, context };

	code_scan_branches(code, bytes, address, branch_to_entry, &b);
	code_references(code, bytes, address, false, load_of_entry, &b);
}
