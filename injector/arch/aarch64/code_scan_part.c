/* SPDX-License-Identifier: MIT */
/*
 * A GOT entry is addressed by two instructions: adrp makes the address of a page in a register, a load adds the rest
 * (up to 32 KiB). Linkers make of them the stubs of the PLT, in one form, for the entries of functions that are called
 * (x16 and x17, which they leave with the entry's address and value, are dead at the entry of a function: AAPCS64
 * 6.1.1). Whatever else the page of an entry may be made for is followed forward, in the order of the instructions,
 * until the register holds something else: a load of the entry, or its address, is "other". The form adrp, ldr, blr of
 * -fno-plt is a load, too.
 */
#include "arch/code_scan_part.h"

#include "arch/aarch64/words.h"
#include "arch/code.h"
#include "base/sorted.h"

#define FOLLOW_WORDS 1024u /* behind what makes the address */
#define FOLLOW_BYTES (FOLLOW_WORDS * WORD_BYTES)
#define REACH (32768u + 4096u) /* of loads from a page, perhaps with the rest added before */
#define CALLEE_SAVED 19u       /* registers from this one on are kept over calls */

/* A landing pad before, and what is followed behind. */
const struct code_scan_reach code_scan_reach = { .before = WORD_BYTES, .after = FOLLOW_BYTES, .look_up_cost = 1 };

bool code_entry_call_only(const struct code_entry *entry)
{
	return entry->others == 0 && entry->jumps > 0;
}

/* ---- references ---- */

/* One that is no jump of a stub, to all entries of these bytes. */
static void note_other(struct code_scan *scan, uint64_t place, unsigned bytes)
{
	for (uint64_t at = place & ~7ull; at < place + bytes; at += 8) {
		size_t entry = code_scan_index(scan, at);
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
	const size_t entry = *is_stub ? code_scan_index(scan, word) : SIZE_MAX;
	if (entry == SIZE_MAX)
		return 0;
	const bool pad = at >= WORD_BYTES && word_at(code + at - WORD_BYTES) == WORD_LANDING_PAD;
	scan->entries[entry].jumps++;
	return code_scan_add_stub(scan, address + at - (pad ? WORD_BYTES : 0), entry, e);
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
int code_scan_part(struct code_scan *scan, const uint8_t *code, size_t bytes, size_t from, size_t to, uint64_t address,
                   struct err *e)
{
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
	return r;
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

static void load_of_entry(void *context, enum reference_kind kind, uint64_t destination)
{
	const struct body *b = context;
	const size_t entry = kind == REFERENCE_DATA ? code_scan_index(b->scan, destination) : SIZE_MAX;

	if (entry != SIZE_MAX)
		b->fn(b->context, (uint32_t)entry);
}

void code_scan_loads(const struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, code_call_fn fn,
                     void *context)
{
	struct body b = { scan, fn, context };

	code_references(code, bytes, address, false, load_of_entry, &b);
}
