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
 * thread may stand between them, and so may the return from a signal handler: it must be shown that none does, or it
 * must be moved to the same place in the copy (entry_code_copy.from, to). An endbr64 stays where it is, the jump comes
 * behind it.
 *
 * What makes a copy wrong is refused:
 *   - a call in it (its return address would be seen), or a branch that cannot be widened (loop, jrcxz, xbegin)
 *   - a jump of the function into the displaced bytes; all of the function is read for that. A jump through a table
 *     could lead there too, but compilers make no case of a switch from the first instructions of a function
 *   - a jump back to the entry: there registers may be live that a hook does not preserve
 *   - code that cannot be decoded, and functions that are shorter than the jump
 *
 * Padding is what follows the unconditional end of a function and consists of nop and int3 only, up to the entry of
 * the next one. That no one jumps there follows from that, and is checked for the two functions beside it.
 */
#ifndef MEMATTACH_ENTRY_CODE_H
#define MEMATTACH_ENTRY_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define ENTRY_JUMP_BYTES 5u
#define ENTRY_DISPLACED_MAX 5u     /* instructions of one byte */
#define ENTRY_COPY_MAX 48u         /* each may grow to 6 bytes if it is short; one of 15 may be last */
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
	bool crosses_word; /* the jump does not lie in one aligned word of 8 bytes */
	bool crosses_line; /* nor in one cache line of 64 bytes: threads would see a part of the store */
};

/* -ENOTSUP: refused, the text says why. */
int entry_code_plan_make(struct entry_code_plan *plan, const struct entry_code_function *f, struct err *e) WARN_UNUSED;

/* The bytes to write, for a hook within 2 GiB. -ERANGE: it is not. */
struct entry_code_patch {
	uint8_t jump[ENTRY_JUMP_BYTES];   /* plan.write_bytes of it */
	uint8_t island[ENTRY_JUMP_BYTES]; /* if there is an island */
};
int entry_code_patch_make(struct entry_code_patch *patch, const struct entry_code_plan *plan, uint64_t hook,
                          struct err *e) WARN_UNUSED;

/* A jump to anywhere, which changes no register. */
#define ENTRY_FAR_JUMP_BYTES 14u
void entry_code_far_jump(uint8_t code[ENTRY_FAR_JUMP_BYTES], uint64_t target);

/* The displaced instructions, encoded for the address at, and the jump back. -ERANGE: at is too far away. */
struct entry_code_copy {
	uint8_t code[ENTRY_COPY_MAX];
	uint8_t bytes;
	uint8_t count;                     /* instructions, as in the plan */
	uint8_t from[ENTRY_DISPLACED_MAX]; /* where each stands, counted from plan.write_at */
	uint8_t to[ENTRY_DISPLACED_MAX];   /* and its copy, counted from at */
};
int entry_code_copy_make(struct entry_code_copy *copy, const struct entry_code_function *f,
                         const struct entry_code_plan *plan, uint64_t at, struct err *e) WARN_UNUSED;

#endif
