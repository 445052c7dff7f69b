/* SPDX-License-Identifier: MIT */
/*
 * Reading machine code without disassembling it: where does a module refer to its own GOT entries?
 *
 * A GOT entry that is only called and jumped through gives its value to nobody, so after detach no copy of our
 * trampoline can be left. Each byte position of the executable segments is taken for a RIP-relative displacement, if
 * the byte before it is one that such an operand has there; a real reference cannot be missed by losing the instruction
 * boundaries, and a chance match only makes the answer more careful ("may escape").
 *
 * Why no register and no word of memory can then hold an address that is jumped to later:
 *
 * - "Called and jumped through" are FF /2 and FF /4 with a RIP-relative operand, found by opcode and ModRM right before
 *   a displacement that nothing follows. No other instruction has these two bytes there. All that could hand the value
 *   on counts as "other": a load (mov entry(%rip), %reg, with -fno-plt or for a comparison), a push, an addition, an
 *   address (lea), by which the entry could be read later. One such reference is enough.
 * - These two put the value into the program counter alone; what a call pushes is an address behind itself.
 * - So a thread has an address of the trampoline only while it executes it: in its program counter, or in that of a
 *   signal frame on top of it. That is looked for at the detach (quiesce.h).
 * - The trampoline hands nothing out: what it and the hook have in registers or on the stack are addresses of its data,
 *   which they alone follow.
 * - A word of data (R_X86_64_64) is not asked for: any code may read it.
 *
 * What is not seen: code that reaches the entry by the module's relocations, as a tool does that hooks GOT entries; by
 * a base register (data of the large code model); or that is made at run time. Such code reads the word as data.
 */
#pragma once

#include "elf/module_file.h"

struct code_entry {
	uint64_t address; /* in: multiple of 8 */
	uint32_t calls;   /* out: call *entry(%rip) seen */
	uint32_t jumps;   /* out: jmp *entry(%rip) seen, PLT stubs among them */
	uint32_t others;  /* out: anything else that addresses the GOT entry */
};

/* The code before an indirect jump: where a PLT stub of the GOT entry may begin. */
struct code_stub {
	uint64_t address; /* of the first byte: endbr64 and bnd included */
	uint32_t entry;   /* index into GOT entries */
};

struct code_scan {
	struct code_entry *entries; /* sorted by address */
	size_t entry_count;
	struct code_stub *stubs; /* sorted by address: every jmp *entry(%rip) */
	size_t stub_count;
	uint64_t bytes;     /* text read */
	uint64_t looked_up; /* positions that might refer to a GOT entry */
};

/*
 * One pass over the executable segments for all GOT entries (count addresses in any order, duplicates allowed).
 * code_scan_done after.
 */
int code_scan_module(struct code_scan *scan, const struct module_file *f, const uint64_t *entries, size_t count,
                     struct err *e) WARN_UNUSED;
void code_scan_done(struct code_scan *scan);

/*
 * The pure part, for a buffer that is at address in the target: adds to what scan->entries holds; GOT entries must be
 * sorted.
 */
int code_scan_bytes(struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address,
                    struct err *e) WARN_UNUSED;

/* NULL if address is none of the GOT entries. */
const struct code_entry *code_scan_entry(const struct code_scan *scan, uint64_t address);

/* The GOT entry was seen to be called or jumped through and nothing else. */
bool code_entry_call_only(const struct code_entry *entry);

/*
 * Is the address the beginning (with or without endbr64/bnd) of a stub that jumps through a GOT entry? Gives the
 * GOT entry's index.
 */
bool code_scan_stub_entry(const struct code_scan *scan, uint64_t address, uint32_t *entry);

/*
 * Which GOT entries does the function body code[bytes] at address call or jump to: through the GOT entry, or by
 * call/jmp rel32 to one of its stubs. fn gets the index of the GOT entry, possibly several times.
 */
typedef void (*code_call_fn)(void *context, uint32_t entry);
void code_scan_calls(const struct code_scan *scan, const uint8_t *code, size_t bytes, uint64_t address, code_call_fn fn,
                     void *context);

/*
 * Direct calls and jumps (rel32) of a body that lead outside of it: fn gets the destination. Chance matches
 * are possible.
 */
typedef void (*code_branch_fn)(void *context, uint64_t destination);
void code_scan_branches(const uint8_t *code, size_t bytes, uint64_t address, code_branch_fn fn, void *context);
