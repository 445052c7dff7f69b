/* SPDX-License-Identifier: MIT */
/* What a function refers to, read from its code without disassembling it: chance matches are possible, what compilers
 * write is not missed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define LAZY_STUB_BYTES 9u
#define RETURNS_ADDRESS_BYTES 12u
#define STUB_BYTES 16u
#define STUB_ALIGNMENT 16u
#elif defined(__aarch64__)
#define LAZY_STUB_BYTES 28u
#define RETURNS_ADDRESS_BYTES 16u
#define STUB_BYTES 24u
#define STUB_ALIGNMENT 4u
#else
#error "memattach does not know the code of this architecture yet"
#endif

enum reference_kind {
	REFERENCE_CALL,
	REFERENCE_JUMP,      /* jmp or jcc: perhaps a tail call */
	REFERENCE_NEAR_JUMP, /* the same within 128 bytes; what is found by chance often leads there */
	REFERENCE_DATA,      /* any other RIP-relative or, in a program at a fixed address, absolute operand */
};

typedef void (*code_reference_fn)(void *context, enum reference_kind kind, uint64_t destination);

/* The code is at address in the target. absolute: addresses may be operands as they are (below 2 GiB). */
void code_references(const uint8_t *code, size_t bytes, uint64_t address, bool absolute, code_reference_fn fn,
                     void *context);

/* Of the module that code is in: what a distance may lead to. */
struct code_extent {
	uint64_t start, end;
};

/*
 * Does a function pass on to another one that a register or a word of memory tells? Not where a switch jumps by a table
 * of its own.
 */
bool code_jumps_by_pointer(const uint8_t *code, size_t bytes, uint64_t address, const struct code_extent *module);

/* Does it make the system call mmap by itself? */
bool code_maps_memory(const uint8_t *code, size_t bytes);

/* Is it a stub of the PLT: nothing but a jump through a GOT entry? code_stub_word also tells through which, if it can
 * be any but the loader's. */
bool code_is_stub(const uint8_t *code, size_t bytes);
bool code_stub_word(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *word);

/* Is it what a GOT entry holds until its function is called first? It hands the loader the number of the relocation. */
#define LAZY_STUB_ANY UINT32_MAX /* *number: all GOT entries of the module hold the same one */
bool code_lazy_stub(const uint8_t code[LAZY_STUB_BYTES], uint32_t *number);

/* Is the call by a register at `at` one of what was read from memory just before, not from the stack and no descriptor
 * of TLS? Where calls take operands in memory instructions say it (calls_pointer). */
bool code_calls_what_was_read(const uint8_t *code, size_t at);

/* Does the function do nothing but return an address that is at a distance from its code? */
bool code_returns_address(const uint8_t code[RETURNS_ADDRESS_BYTES], uint64_t address, uint64_t *returned);

/* Does it do nothing but return the number of four bytes at *place, a distance from its code? */
bool code_returns_number(const uint8_t code[RETURNS_ADDRESS_BYTES], uint64_t address, uint64_t *place);

enum distance_kind {
	DISTANCE_BRANCH,  /* of a call or jump, with or without a condition */
	DISTANCE_ADDRESS, /* makes the address */
	DISTANCE_OTHER,
};

/* at: offset in the code where the distance begins. */
typedef void (*code_distance_fn)(void *context, enum distance_kind kind, size_t at, uint64_t target);

/* Each distance that leads to low .. high; DISTANCE_BEFORE bytes in front of it, and all of it, must be in the code. */
#define DISTANCE_BEFORE 3u
#define DISTANCE_BYTES 4u
void code_distances(const uint8_t *code, size_t bytes, uint64_t address, const struct code_extent *wanted,
                    code_distance_fn fn, void *context);
