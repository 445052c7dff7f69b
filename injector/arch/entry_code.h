/* SPDX-License-Identifier: MIT */
/*
 * How the entry of a function can be hooked: which bytes a jump replaces, and what becomes of the instructions there.
 * Pure: everything is computed from bytes that the caller has read; nothing is read or written here.
 *
 * The hook is reached by one jump, and the displaced instructions are run as a copy elsewhere, which jumps back behind
 * them. The jump is
 *
 *   long    5 bytes, straight to the hook
 *   short   2 bytes, to an island: 5 bytes of padding within 127 bytes, which hold the long jump
 *
 * If one instruction is displaced (ENTRY_ONE), a thread is before it or behind it at every moment, and one store within
 * a cache line is right for all threads: they see the old instruction or the jump. If several are (ENTRY_SEVERAL), a
 * thread may stand between them, and so may the return from a signal handler: it must be shown that none does. An
 * endbr64 stays where it is, the jump comes behind it.
 *
 * The jump comes behind the first instruction of the others, too: the first byte of a function is where uprobes are put
 * (perf, bpftrace, SystemTap), at any time, by the kernel. It writes int3 there, runs what the file has there
 * elsewhere, goes on behind that, and at the end writes the file's byte back. A thread that comes to a jump at the
 * entry would so go on in the middle of it. Behind the first instruction both work, whoever came first and whoever goes
 * first. The hook is to see the registers of the call, so the way there undoes what the first
 * instruction has done to one (plan.undo), and the copy begins with it (plan.repeated_bytes). A function that is
 * nothing but a jump gets ours in its place: a uprobe there takes the call to where the function leads, past the hook.
 *
 * What makes a copy wrong, or a uprobe, is refused:
 *   - a call in it (its return address would be seen), or a branch that cannot be widened (loop, jrcxz, xbegin)
 *   - a jump of the function into the displaced bytes; all of the function is read for that. A jump through a table
 *     could lead there too, but compilers make no case of a switch from the first instructions of a function
 *   - a jump back to the entry: there registers may be live that a hook does not preserve
 *   - a first instruction that cannot be run twice (instruction.h): compilers begin hardly any function with one
 *   - code that cannot be decoded, and functions that are shorter than the jump
 *
 * Padding is what follows the unconditional end of a function and consists of nop and int3 only, up to the entry of
 * the next one. That no one jumps there follows from that, and is checked for the two functions beside it. Where a
 * session may have set pointers to the nop in front of a function, and the program may have copied them, that nop is no
 * place for an island, ever.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "arch/instruction.h"

#if defined(__x86_64__)
#define ENTRY_JUMP_BYTES 5u
#define ENTRY_DISPLACED_MAX 5u /* instructions of one byte */
#define ENTRY_COPY_MAX 48u     /* one of 15 may be first, and last; each may grow to 6 bytes if it is short */
#define ENTRY_FIRST_MAX 40u    /* endbr64, one that is run twice, and what is displaced */
#define ENTRY_UNDO_BYTES 5u
#define ENTRY_FAR_JUMP_BYTES 14u
#define ENTRY_REACH 0x7fffffffull /* of a jump, and of what its copy refers to */
#elif defined(__aarch64__)
#define ENTRY_JUMP_BYTES 4u
#define ENTRY_COPY_MAX 16u /* one that is run twice, and up to three for the one that is displaced */
#define ENTRY_FIRST_MAX 8u
#define ENTRY_UNDO_BYTES 4u
#define ENTRY_FAR_JUMP_BYTES 16u
#define ENTRY_REACH 0x7fffffcull
#else
#error "memattach hooks no entries on this architecture yet"
#endif
#define ENTRY_BODY_MAX (64u << 10) /* a longer function is not read, and refused */
#define ENTRY_AFTER_MAX 16u        /* functions are aligned to this: padding behind one is not longer */

struct entry_code_range {
	uint64_t start;
	uint64_t end;
};

struct entry_code_function {
	uint64_t address;
	const uint8_t *code; /* all of the function */
	size_t bytes;
	const uint8_t *before; /* from the entry of an earlier function, up to this one; NULL: not known */
	size_t before_bytes;
	const uint8_t *after; /* what stands behind it, up to the next function that is known; NULL: not known */
	size_t after_bytes;
	uint64_t entered; /* the lowest address behind the entry that code elsewhere branches to; 0: none is known */
	const struct entry_code_range *taken; /* islands that other entries have; may be NULL */
	size_t taken_count;
	bool aliased; /* pointers to functions may lead to the nop in front of them (function_alias.h) */
};

enum entry_code_kind {
	ENTRY_ONE,
	ENTRY_SEVERAL,
};

struct entry_code_plan {
	enum entry_code_kind kind;
	uint64_t write_at;       /* where the jump is written */
	uint64_t island;         /* where the long jump of a short one stands; 0: the jump is long */
	uint8_t write_bytes;     /* of the jump: 5 or 2 */
	uint8_t displaced_bytes; /* from write_at, whole instructions */
	uint8_t displaced_count;
	uint8_t repeated_bytes;       /* before write_at: an instruction that is run again; 0: none */
	struct instruction_undo undo; /* before it is run again */
	uint8_t code_bytes;           /* of code: from the entry on, what is displaced included */
	uint8_t code[ENTRY_FIRST_MAX];
	bool crosses_word; /* the jump does not lie in one aligned word of 8 bytes */
	bool crosses_line; /* nor in one cache line of 64 bytes: threads would see a part of the store */
};

/* -ENOTSUP: refused, the text says why. */
int entry_code_plan_make(struct entry_code_plan *plan, const struct entry_code_function *f, struct err *e) WARN_UNUSED;

/* The bytes to write, for a hook within ENTRY_REACH. -ERANGE: it is not. */
struct entry_code_patch {
	uint8_t jump[ENTRY_JUMP_BYTES];   /* plan.write_bytes of it */
	uint8_t island[ENTRY_JUMP_BYTES]; /* if there is an island */
};
int entry_code_patch_make(struct entry_code_patch *patch, const struct entry_code_plan *plan, uint64_t hook,
                          struct err *e) WARN_UNUSED;

void entry_code_undo(uint8_t code[ENTRY_UNDO_BYTES], const struct instruction_undo *undo);

/* A jump to anywhere, which changes no register, or one that calls may change. */
void entry_code_far_jump(uint8_t code[ENTRY_FAR_JUMP_BYTES], uint64_t target);

/* The repeated and the displaced instructions, encoded for the address at, and the jump back. -ERANGE: at is too far
 * away. */
struct entry_code_copy {
	uint8_t code[ENTRY_COPY_MAX];
	uint8_t bytes;
};
int entry_code_copy_make(struct entry_code_copy *copy, const struct entry_code_plan *plan, uint64_t at,
                         struct err *e) WARN_UNUSED;
