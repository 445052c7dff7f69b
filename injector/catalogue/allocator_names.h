/* SPDX-License-Identifier: MIT */
/*
 * Names of allocation functions: those of HOOK_LIST under the prefixes in use, and functions that only one allocator
 * has. A name gives a shape and the place of the size, and says whose it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "catalogue/allocator_catalogue.h"
#include "hooks.h"

/* The new size of __rust_realloc(block, old size, alignment, new size); no function of HOOK_LIST has it there. */
#define SIZE_ARG3 6

struct allocation_name {
	enum allocator_family family;
	uint32_t hook; /* enum hook_id: the function of HOOK_LIST that it is like */
	uint8_t shape; /* SHAPE_* */
	uint8_t size;  /* SIZE_* */
};

#define GIVEN_MAX 32u
#define GIVEN_NAME_MAX 128u

/* A function that the user says to be an allocation function. */
struct given_name {
	char symbol[GIVEN_NAME_MAX];
	struct allocation_name name;
};

/* "pool_get=malloc:1": a function like malloc whose size is argument 1, counted from 0. False: it cannot be read, or no
 * hook has such arguments. */
bool given_name_parse(const char *text, struct given_name *given);

/* Is the symbol an allocation function? mmap and kin are none. */
bool allocation_name_read(const char *symbol, struct allocation_name *name);

/* The name without what rustc puts before it since 1.87 (_RNvC…7___rustc12___rust_alloc); else the symbol itself. */
const char *allocation_name_plain(const char *symbol);
