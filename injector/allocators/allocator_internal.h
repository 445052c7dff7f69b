/* SPDX-License-Identifier: MIT */
/*
 * Between the files that find allocators: allocator_find.c collects, allocator_layers.c reads what functions pass on
 * to, allocator_callers.c who calls them, allocator_identify.c whose they are, allocator_entries.c plans the hooks,
 * allocator_quiet.c knows what may be called instead of a function that throws, allocator_registers.c on which
 * functions a caller may rely for its registers.
 */
#pragma once

#include "allocators/allocator_find.h"
#include "allocators/function_table.h"
#include "arch/instruction.h"

struct finder {
	const struct allocators_input *in;
	struct target_memory memory; /* charged */
	struct budget budget;
	uint32_t *by_address; /* numbers of the functions, sorted, when all have been collected; else NULL */
	struct scope *scope;  /* for names that the loader has not looked up yet */
	uint64_t asks_mode;   /* tc_query_new_mode of gperftools: what its malloc does without memory. Or 0 */
	struct allocators out;
};

/* What is open of the module that is worked on. */
struct module_view {
	uint32_t module;
	struct module_file file;
	struct function_table table;
	Elf64_Rela *jumps; /* relocations of the words that calls of other modules go through */
	size_t jump_count;
};

#define DECODE_COST 64u /* units of the budget for a byte of code that is decoded several times */

/* The function at an address, or NULL. */
struct allocator_function *finder_function(const struct finder *f, uint64_t address);

/* Where a branch of the module's code ends, PLT stubs followed; 0: not known. */
uint64_t allocator_layers_destination(struct finder *f, const struct module_view *v, const struct instruction *in);
/* All code of the module is read, for the functions of it. */
int allocator_callers_find(struct finder *f, const struct module_view *v, struct err *e) WARN_UNUSED;
/* The layer of each function of the module. */
int allocator_layers_find(struct finder *f, const struct module_view *v, struct err *e) WARN_UNUSED;
/* Whether each function of the module uses all registers. */
int allocator_registers_find(struct finder *f, const struct module_view *v, struct err *e) WARN_UNUSED;
/* The plan for the entry of each function of the module. */
int allocator_entries_find(struct finder *f, const struct module_view *v, struct err *e) WARN_UNUSED;

/* Finds the quiet function of each function of the allocator that throws. */
int allocator_quiet_find(struct finder *f, const struct module_view *v, const struct allocator *a,
                         struct err *e) WARN_UNUSED;

/* Name and version of an allocator by the module's constant data; reads nothing where the family and libc tell. */
int allocator_identify(struct finder *f, const struct module_view *v, struct allocator *a, struct err *e) WARN_UNUSED;
/* An allocator whose messages are in the module. NULL: none. */
int allocator_identify_by_text(struct finder *f, const struct module_view *v, const struct known_allocator **known,
                               struct err *e) WARN_UNUSED;
