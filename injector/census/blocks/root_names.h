/* SPDX-License-Identifier: MIT */
/*
 * What the places are called from which blocks were reached (reach.roots): a variable, an object of CPython, the stack
 * of a thread; else only in what kind of memory they are, or that they are a place of a module without a name.
 */
#pragma once

#include "census/blocks/data_symbols.h"
#include "census/pages/stack_owners.h"
#include "census/reach/reach.h"
#include "census/blocks/type_names.h"

struct root_names {
	const struct reach *reach;
	const struct stack_owners *stacks;
	struct data_symbols symbols;
};

struct root_name {
	char text[DATA_SYMBOL_NAME];
	uint64_t end;  /* roots before that are of the same */
	bool is_typed; /* it is a variable or an object */
};

/* root_names_close afterwards. */
void root_names_open(struct root_names *n, const struct reach *r, const struct stack_owners *stacks,
                     const struct target_memory *process);
void root_names_close(struct root_names *n);
/* Of the root of this number. */
void root_names_find(const struct root_names *n, size_t root, struct root_name *name);
/* The type of an object by its first words: a class of C++ or, behind a count of references, of CPython. False: none.
 */
bool root_names_of_object(const struct root_names *n, const uint64_t *words, size_t count, char name[TYPE_NAME]);
