/* SPDX-License-Identifier: MIT */
/*
 * Which functions of a module are its allocator? For modules that define malloc beside much else: a program with
 * jemalloc or tcmalloc linked in exports malloc and a few more, and has the rest of the allocator anywhere, without
 * names.
 *
 * The functions are known by the search table of the call frame information, and what they refer to (calls, jumps,
 * addresses taken, words of writable data) by their code. From these:
 *
 *   entered   the allocation functions that are exported, and all that they jump to: tail calls and cold parts. Whoever
 *             was called by the program to allocate, and has not returned, has a frame in one of them.
 *   related   all that the former call or take the address of, and so on: the rest of the allocator, with what the C
 *             library calls by a pointer (destructors of threads, handlers of fork, threads of the allocator's own).
 *             And those that refer to a function of these which is not exported, or to a word that they refer to:
 *             whoever takes a lock of the allocator refers to the lock, or to the function that waits for it.
 *
 * So a thread that holds a lock of the allocator has a frame in one of both, whichever way it came there. Chance
 * matches in the code, and helpers that the program has in common with its allocator, make the answer larger, never
 * smaller.
 *
 * There is no answer where the code of malloc leads on by a pointer (what follows may be anywhere), where it
 * has no call frame information, and for modules that are too large to be read at each attach.
 */
#pragma once

#include "elf/module_file.h"

#define ALLOCATOR_TEXT_MAX (64ull << 20)

enum allocator_part {
	ALLOCATOR_NOT,
	ALLOCATOR_RELATED,
	ALLOCATOR_ENTERED,
};

struct allocator_range {
	uint64_t start, end;
	enum allocator_part part;
};

struct allocator_code {
	struct allocator_range *list; /* ascending, neighbours of the same part taken together */
	size_t count;
	const char *unknown; /* why there is no answer, NULL: there is */
};

/* Is it a function that a program calls to allocate, to free, or to ask its allocator something? */
typedef bool (*allocator_name_fn)(const char *name);

/* f: of the module; instead: another module whose functions it may stand for (the C library), or NULL. -ENOMEM alone.
 */
int allocator_code_find(struct allocator_code *c, const struct module_file *f, allocator_name_fn is_allocation,
                        const struct elf_module *instead, struct err *e) WARN_UNUSED;
void allocator_code_done(struct allocator_code *c);
