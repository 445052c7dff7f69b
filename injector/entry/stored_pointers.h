/* SPDX-License-Identifier: MIT */
/*
 * Pointers to allocation functions that the program has stored: in a table of an allocator's functions, in an object
 * with a destructor. Calls through them go past GOT entries. A program that frees so what it allocates through GOT
 * entries would look as if it leaked all of that (php with USE_ZEND_ALLOC=0).
 *
 * Memory that the program has written is searched, pages that are there only, for the addresses that GOT entries lead
 * to. Not searched are stacks, on which calls leave such words behind; the loader and the C library, whose own pointers
 * are known; and the words that are to be patched themselves. A number that is no pointer may look like one: then a
 * function is hooked at its entry that need not have been. The search ends after STORED_CPU_NS of processor time or
 * STORED_BYTES of memory.
 */
#pragma once

#include "got/got_plan.h"
#include "process/target.h"

#define STORED_CPU_NS 300000000ull
#define STORED_BYTES (512ull << 20)

struct stored_pointer {
	uint64_t at;       /* the word */
	uint64_t function; /* that it holds, one that GOT entries of the plan lead to; 0: none was found */
};

struct stored_pointers_input {
	const struct target *target;
	const struct target_memory *memory;
	const struct maps *maps;
	const struct modules *modules;
	const struct libc *libc;
	const struct got_plan *plan;
};

int stored_pointers_find(struct stored_pointer *found, const struct stored_pointers_input *in,
                         struct err *e) WARN_UNUSED;
