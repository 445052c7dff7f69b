/* SPDX-License-Identifier: MIT */
/*
 * Which functions are hooked at their entries, and which GOT entries need not be patched therefore.
 *
 * An entry hook sees every call of a function: through GOT entries, direct, and by pointers that were copied before.
 * But it changes code. So by default (HOOKS_AUTO) GOT entries are patched where they see all, and entries are hooked
 * where they cannot: in an allocator that its own module calls, as a program does that has jemalloc linked in, in one
 * to whose functions the program has stored pointers, and in one to which a GOT entry leads whose value the program may
 * copy, as one to glibc's malloc and free in nearly every program: libc.so.6 itself reads its entries.
 * Such a word is never changed: a copy of what we wrote there could be anywhere at the detach. Where its allocator is
 * not hooked at the entries it is left alone, and that is said.
 *
 * Of such an allocator the lowest layer is hooked (allocator_find.h), and no GOT entry that leads to any of its
 * functions: each call is counted once. A function that may leave registers alone on which its callers rely gets a hook
 * that leaves them alone, too (allocator_registers.c). Functions of a mixed layer are TRAMPOLINE_OUTER (control.h).
 * Either all that must be hooked can be, or the allocator is left to GOT entries, and that is said.
 */
#pragma once

#include "allocators/allocator_find.h"

enum hooks_mode {
	HOOKS_AUTO,
	HOOKS_GOT,   /* no code is changed */
	HOOKS_ENTRY, /* all allocators that are called; an error if that is not possible for one in force */
};

#define ENTRY_HOOKS_MAX 128u

struct entry_hook {
	char name[ALLOCATOR_NAME_MAX];
	uint64_t address;
	uint32_t hook;  /* enum hook_id */
	bool outer;     /* TRAMPOLINE_OUTER */
	bool keeps;     /* TRAMPOLINE_KEEPS: nothing shows that it uses all registers */
	bool given;     /* by the user, or of CPython: says nothing of the other functions of its module */
	uint64_t quiet; /* what is called instead of this one, which throws (control.h); 0: none is needed */
	bool quiet_aligned;
	struct entry_code_plan plan;
	uint64_t module_start, module_end; /* whose function it is */
	uint32_t trampoline;
	uint64_t detour; /* struct detour_area of control.h holds it; 0: not placed yet */
};

struct entry_hooks {
	struct entry_hook *list;
	size_t count;
	uint64_t *covered; /* sorted: functions of the allocators that are hooked, wrappers too */
	size_t covered_count;
	char text[128];   /* "jemalloc 5.3.0", for messages */
	char *notes;      /* lines: allocators that could not be hooked; "" none */
	bool asks_usable; /* the allocator in force is hooked, or none is: malloc_usable_size belongs to all blocks. And
	                     no hook keeps registers, which malloc_usable_size may change */
};

struct entry_hooks_input {
	const struct allocators *found;
	const struct modules *modules;
	const struct libc *libc;
	enum hooks_mode mode;
	const struct got_plan *plan; /* its GOT entries */
	uint64_t stored; /* an allocation function whose address the program has stored (stored_pointers.h), 0 none */
};

/* -ENOTSUP with HOOKS_ENTRY: none can be hooked, the text says why. entry_hooks_free afterwards. */
int entry_hooks_choose(struct entry_hooks *h, const struct entry_hooks_input *in, struct err *e) WARN_UNUSED;
void entry_hooks_free(struct entry_hooks *h);
/* Adds a line to h->notes. */
int entry_hooks_note(struct entry_hooks *h, struct err *e, const char *format, ...)
	__attribute__((format(printf, 3, 4))) WARN_UNUSED;

/* Of a function that allocator_functions_look() has looked at. NULL: hook is how it is hooked; else why it cannot be.
 */
const char *entry_hook_make(struct entry_hook *hook, const struct allocator_function *fn, const struct modules *modules,
                            bool outer);
/* Adds it to the others. */
int entry_hooks_add(struct entry_hooks *h, const struct entry_hook *hook, struct err *e) WARN_UNUSED;

/* Are all calls of the function at the address seen by the hooks? */
bool entry_hooks_cover(const struct entry_hooks *h, uint64_t address);
/* Is a function of the module hooked, and not because it was given? */
bool entry_hooks_are_in(const struct entry_hooks *h, const struct elf_module *m);
/* The plan notes of a module that an allocator is in it which is not seen: drops the lines that are not true any more.
 */
void entry_hooks_drop_notes(const struct entry_hooks *h, const struct modules *modules, struct got_plan *plan);
/* Drops what the hooks see anyway: GOT entries of the plan that lead to covered functions, and those notes. */
void entry_hooks_relieve(const struct entry_hooks *h, const struct modules *modules, struct got_plan *plan);

/* Without dlopen: what the trampolines of GOT entries call instead of a function that throws. */
void entry_hooks_give_quiet(const struct allocators *found, struct got_plan *plan);

/* The hook whose detour holds the address, or NULL. */
const struct entry_hook *entry_hooks_at(const struct entry_hooks *h, uint64_t detour_address);
