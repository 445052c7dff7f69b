/* SPDX-License-Identifier: MIT */
/*
 * What an address in the first words of a block says of its type:
 *
 * - a vtable of C++ (Itanium C++ ABI, 2.5.2): in front of it are an offset of 0 and the type_info, whose second word
 *   leads to the mangled name of the class. It needs no symbols, but RTTI.
 * - a type of CPython: an object of the type "type", or of a class derived from it, which is of itself; its fourth word
 *   leads to its name.
 *
 * The words are the target's, which may imitate types: it gets names that it has made up.
 */
#pragma once

#include "census/pages/census_memory.h"

#define TYPE_NAME 128

/* False: it is none. name: "shop::Book"; arguments of templates are left out: "shop::Cache<…>". */
bool type_name_of_vtable(struct census_memory *memory, uint64_t word, char name[TYPE_NAME]);
bool type_name_of_python(struct census_memory *memory, uint64_t word, char name[TYPE_NAME]);
/* May it be worth asking? Does it lead to a module. */
bool type_name_may_be_vtable(const struct census_memory *memory, uint64_t word);
/* May a word be the count of references in front of a type? */
bool type_name_may_follow(uint64_t word);
/* A mangled name of a class as people read it; false: not of a kind that is known. */
bool type_name_demangle(const char *mangled, char name[TYPE_NAME]);
