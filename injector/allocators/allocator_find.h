/* SPDX-License-Identifier: MIT */
/*
 * The allocators of a process: which modules define allocation functions, under which names, who calls them how, and
 * how their entries can be hooked. Only looks.
 *
 * An allocator is what one module defines for one family of names (allocator_names.h). Its functions are known by
 * address: malloc and tc_malloc at one address are one function. Where all that a module defines passes on to functions
 * of another one, as operator new of libstdc++ does and reallocarray of libbsd, the module is no allocator.
 *
 * Which functions are the lowest layer is found in their code (allocator_layers.c):
 *
 *   LAYER_LOWEST   none of its paths leads through another listed function: it is hooked
 *   LAYER_WRAPPER  every path to its end leads through one: only that one is hooked
 *   LAYER_MIXED    some do (realloc of a null pointer calls malloc; operator new of an allocator has a fast path of
 *                  its own): it is hooked, and a hook must know that it runs inside of another one
 *
 * Calls of an allocator are seen by GOT entries where the plan has such (got_plan.h). Calls within its own module are
 * direct, and only an entry hook sees them: they are counted by reading all code of the module for branches, and
 * addresses that are computed, which end at an entry. Bytes that look like such by chance are one in 10^8.
 */
#pragma once

#include "catalogue/allocator_names.h"
#include "arch/entry_code.h"
#include "got/got_plan.h"
#include "allocators/module_names.h"

#define ALLOCATOR_FUNCTIONS_MAX 4096u
#define ALLOCATOR_NAME_MAX 48u

enum allocator_layer {
	LAYER_UNKNOWN, /* its code cannot be read */
	LAYER_LOWEST,
	LAYER_WRAPPER,
	LAYER_MIXED,
};

struct allocator_function {
	uint32_t module; /* index in modules.list */
	struct allocation_name like;
	char name[ALLOCATOR_NAME_MAX]; /* the symbol, the first of several */
	uint64_t address;
	uint64_t bytes; /* 0 unknown */
	enum allocator_layer layer;
	bool own_until_handler; /* of a mixed one that throws: it passes on only after it has called a new_handler */
	uint32_t got_entries;   /* that lead to it and would be patched */
	uint32_t direct_calls;  /* branches to it in its module, outside of the module's allocation functions */
	uint32_t address_taken; /* places in its module that compute its address, and words of data that hold it */
	uint64_t entered; /* the lowest address shortly behind the entry that code outside of it branches to, 0 none */
	struct entry_code_plan entry; /* if entry_refusal is "" */
	char entry_refusal[64];
	uint64_t named;     /* bits: enum hook_id that its names say it is */
	bool own_name;      /* one of them is a name that only this family has */
	bool uses_all;      /* no caller can rely on any register across a call of it (allocator_registers.c) */
	uint64_t quiet;     /* of a function that throws (control.h): address of such a one, 0: none is known */
	bool quiet_aligned; /* it takes the alignment first */
};

struct allocator {
	uint32_t module;
	enum allocator_family family;
	char name[32];            /* "jemalloc", "glibc"; "an allocator of its own" if nothing tells */
	char version[64];         /* "" unknown */
	enum names_source source; /* where names were found */
	bool in_force;            /* malloc of the global scope is its own */
	size_t first;             /* its functions: consecutive in allocators.functions */
	size_t count;
	uint32_t got_entries; /* that lead to it, in got_modules modules */
	uint32_t got_modules;
	uint32_t direct_calls;
	uint32_t address_taken;
};

struct allocators {
	struct allocator_function *functions;
	size_t function_count;
	struct allocator *list;
	size_t count;
	/* The program itself, if no function was found in it. */
	bool program_has_names;                     /* .symtab or the like */
	const struct known_allocator *program_text; /* an allocator whose messages are in it, NULL none */
};

struct allocators_input {
	const struct modules *modules;
	const struct libc *libc;
	const struct got_plan *plans;
	const struct target_memory *memory;
	const struct maps *maps;
	const struct given_name *given; /* an allocator of its own in each module that has such functions */
	size_t given_count;
};

/* allocators_free afterwards. -E2BIG: beyond the budget (budget.h), or too many functions. */
int allocators_find(struct allocators *a, const struct allocators_input *in, struct err *e) WARN_UNUSED;
void allocators_free(struct allocators *a);

/*
 * Functions of one module that no name tells: module, like and address are set, the others become what
 * allocators_find() would have found, but for layers and quiet functions.
 */
int allocator_functions_look(struct allocator_function *list, size_t count, const struct allocators_input *in,
                             struct err *e) WARN_UNUSED;

/* Can every function that must be hooked be hooked at its entry? Counts those that can, and all. */
size_t allocator_hookable(const struct allocators *a, const struct allocator *of, size_t *all);
