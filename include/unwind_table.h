/* SPDX-License-Identifier: MIT */
/*
 * The unwind tables: compiled by memattach from each module's .eh_frame, mapped read-only into the
 * target, and the only thing that the payload needs to walk a stack. No parser runs in the target.
 *
 * The tables are in one sealed-against-shrinking memfd that memattach only appends to:
 *
 *   struct unwind_header   at offset 0; index_offset names the index in force
 *   struct unwind_index    what is mapped now, replaced as a whole when modules come or go
 *   rows                   per module: uint32_t pc[row_count], then uint32_t rule[row_count]
 *
 * memattach writes rows and a new index after the old ones, then releases index_offset; the payload acquires it
 * once per stack. What an index in use refers to is never changed. Offsets are bytes from the start of the memfd.
 *
 * A row holds from its pc up to the pc of the next row of the module. pc is relative to unwind_module.start.
 * Rows for addresses that no FDE covers carry UNWIND_NONE, so gaps are explicit.
 */
#pragma once

#include <stdint.h>

#define UNWIND_MAGIC 0x31444e575441454dull /* "MEATWND1" */
#define UNWIND_VERSION 3u /* another one, too, where the same information gives other rows: they are cached */

/*
 * The rule word. sp and fp are the stack pointer and the frame pointer; the return address is at CFA - 8, but for the
 * last four kinds, and the caller's sp is the CFA.
 *
 *   bits  0.. 3  kind, how the CFA is found
 *   bits  4..21  n, signed, in units of 8 bytes
 *   bits 22..31  fp of the caller: 0 unchanged; 1..1021 stored at CFA - 8 * value;
 *                UNWIND_FP_AT_FP stored at *(fp) (frames that realign the stack); UNWIND_FP_LOST
 */
enum unwind_kind {
	UNWIND_NONE = 0,        /* no FDE: the frame-pointer fallback may be tried */
	UNWIND_SP = 1,          /* CFA = sp + n */
	UNWIND_FP = 2,          /* CFA = fp + n */
	UNWIND_AT_SP = 3,       /* CFA = *(sp + n) */
	UNWIND_AT_SP_8 = 4,     /* CFA = *(sp + n) + 8 */
	UNWIND_AT_FP = 5,       /* CFA = *(fp + n) */
	UNWIND_END = 6,         /* the outermost frame: return address undefined */
	UNWIND_SIGNAL = 7,      /* a signal frame: sp points to the ucontext (Linux rt_sigframe) */
	UNWIND_UNSUPPORTED = 8, /* there is a rule, but none of the above: the walk ends, truncated */
	/* Where calls leave the return address in a register (the link register), and functions save it themselves: */
	UNWIND_PAIR_SP = 9,  /* CFA = sp + n; fp at CFA - 8 * value, or with UNWIND_FP_AT_FP at sp, and the return
	                        address in the word above */
	UNWIND_PAIR_FP = 10, /* CFA = fp + n; the same, or at fp */
	UNWIND_LINK_SP = 11, /* CFA = sp + n; fp unchanged, the return address at CFA - 8 * value; 0: in its register */
	UNWIND_LINK_FP = 12, /* CFA = fp + n; the same */
};
#define UNWIND_KIND(rule) ((rule) & 15u)
#define UNWIND_N_BYTES(rule) ((int64_t)((int32_t)((rule) << 10) >> 14) * 8)
#define UNWIND_FP_FIELD(rule) ((rule) >> 22)
#define UNWIND_FP_SAME 0u
#define UNWIND_FP_MAX 1021u
#define UNWIND_FP_AT_FP 1022u
#define UNWIND_FP_LOST 1023u
#define UNWIND_N_MIN_BYTES (-131072 * 8)
#define UNWIND_N_MAX_BYTES (131071 * 8)
#define UNWIND_RULE(kind, n_bytes, fp)                                                                   \
	((uint32_t)(kind) | (((uint32_t)((n_bytes) / 8) & 0x3ffffu) << 4) | ((uint32_t)(fp) << 22))

struct unwind_header {
	uint64_t magic;
	uint32_t version;
	uint32_t reserved_;
	uint64_t index_offset; /* (atomic) of the index in force, multiple of 8; 0: none yet */
	uint64_t reserved2_[5];
};

/* One executable stretch of a module (its segments with PF_X, taken together). */
struct unwind_module {
	uint64_t start;       /* address in the target */
	uint64_t end;
	uint64_t rows_offset; /* multiple of 8; 0 if row_count is 0 */
	uint32_t row_count;
	uint32_t id;          /* module id as in the dump */
};

/* A stretch of address space of the target with like permissions; neighbours are merged. */
#define UNWIND_RANGE_STACK 1u /* readable and writable, private: may hold a stack */
#define UNWIND_RANGE_EXEC 2u  /* executable, or reserved for more of the code that is before it: never to be read */
#define UNWIND_RANGE_FILE 4u  /* of a file that is no module: what mremap makes of it is a mapping of a file, too */
struct unwind_range {
	uint64_t start;
	uint64_t end;
	uint32_t flags;
	uint32_t reserved_;
};

struct unwind_index {
	uint32_t generation;   /* grows by one with each index; cached rules of another generation are stale */
	uint32_t module_count;
	uint32_t range_count;
	uint32_t reserved_;
	/* struct unwind_module modules[module_count];  sorted by start, disjoint */
	/* struct unwind_range ranges[range_count];     sorted by start, disjoint */
};

_Static_assert(sizeof(struct unwind_header) == 64, "unwind_header");
_Static_assert(sizeof(struct unwind_module) == 32, "unwind_module");
_Static_assert(sizeof(struct unwind_range) == 24, "unwind_range");
_Static_assert(sizeof(struct unwind_index) == 16, "unwind_index");
