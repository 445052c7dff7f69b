/* SPDX-License-Identifier: MIT */
/*
 * Functions of CPython that are hooked: those of its table of allocators (python_hooks.h), and the one that ends code
 * objects (python_code.h). No name tells where they are, but words of the interpreter's data lead to them. They are
 * hooked at their entries, as allocators are (entry_hooks.h): where code may not be changed, or a function cannot be
 * hooked, none of those that belong together is.
 *
 * A build that is optimised by a profile has functions of the table in line behind a comparison of its word, and no
 * hook at the entry would see these calls. So such a word gets another address of the function, which is no address of
 * ours either (arch/function_alias.h).
 */
#pragma once

#include "session/session.h"

struct python_function {
	uint64_t word;   /* address of a word that leads to it */
	uint64_t value;  /* what that holds */
	uint32_t hook;   /* enum hook_id */
	bool outer;      /* TRAMPOLINE_OUTER */
	bool in_line;    /* calls of it may be in line: the word is changed */
	uint64_t second; /* address of another word with the same value, 0 none */
};

/*
 * Adds the functions to s->python.functions and to the hooks of the session, or none of them. m: the interpreter.
 * False: why says why not.
 */
bool python_functions_hook(struct session *s, const struct elf_module *m, const struct target_memory *memory,
                           const struct python_function *list, unsigned count, char *why, size_t size) WARN_UNUSED;
/* Adds them again to hooks that were chosen anew before anything was changed. */
int python_functions_again(struct session *s, struct err *e) WARN_UNUSED;
