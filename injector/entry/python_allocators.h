/* SPDX-License-Identifier: MIT */
/*
 * The interpreter's table of allocators. CPython allocates through rows of five words, one row for each domain: a
 * context, then the functions malloc, calloc, realloc and free, which get the context first (PyMemAllocatorEx). Nothing
 * exports the rows, and they are elsewhere in each version. What tells where they are is the code of the functions that
 * the interpreter exports, PyObject_Malloc and its kin: each refers to the context of its row and to its own function
 * in it. The four functions of a domain must agree upon one row; besides, those of the others may refer to that of raw,
 * to which they pass large requests on.
 *
 * Objects and buffers (the domains object and mem) come from CPython's own allocator for small blocks, unless the
 * program has set another: PYTHONMALLOC, tracemalloc and other tools do so. It is believed to be that one if the
 * context of both domains is NULL, both have the same four functions, these are code of the interpreter, and the first
 * compares a size with the limit of its blocks. What the domain raw has is the C library's malloc, or what the program
 * has put there; it is looked at only to tell whether the others are the same.
 *
 * CPython 3.13 and later contain a third one, mimalloc, for PYTHONMALLOC=mimalloc and for builds without the
 * interpreter's lock. It is not used if all domains lead to one of the two. tracemalloc and the debug hooks are no
 * allocators: their functions are the interpreter's, and their context, in its data, is or has the row to which they
 * pass all on.
 */
#pragma once

#include "elf/elf_module.h"

enum python_row_word { ROW_CONTEXT, ROW_MALLOC, ROW_CALLOC, ROW_REALLOC, ROW_FREE, ROW_WORDS };

struct python_row {
	uint64_t address;
	uint64_t words[ROW_WORDS];
};

enum python_domain { DOMAIN_RAW, DOMAIN_MEM, DOMAIN_OBJECT, DOMAINS };

enum python_allocator_kind {
	PYTHON_ALLOCATOR_UNKNOWN, /* why says what was not as it should be */
	PYTHON_ALLOCATOR_POOL,    /* CPython's own */
	PYTHON_ALLOCATOR_MALLOC,  /* that of the domain raw */
};

struct python_allocators {
	enum python_allocator_kind kind;
	bool no_third; /* CPython's own and that of raw give all that there is, also where a tool is before them */
	struct python_row rows[DOMAINS]; /* read, unless the kind is unknown */
	char why[200];
};

/* Never fails. m: the interpreter. Reads are charged to the budget of tm, if it has one. */
void python_allocators_find(struct python_allocators *a, const struct elf_module *m, const struct target_memory *tm,
                            const struct maps *maps);
