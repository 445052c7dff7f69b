/* SPDX-License-Identifier: MIT */
/*
 * The catalogue of allocators: all by which memattach knows one, and what is special about it. A new allocator is a row
 * of known_allocators; functions that have names of their own get rows in allocator_names.c.
 *
 * Who asks: which functions to hook (allocator_names.h), whose an allocator is (allocator_identify.c), what a module
 * contains unseen (plan_notes.h), where no thread may be borrowed (safe_point.c, allocator_code.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum allocator_family {
	FAMILY_PLAIN, /* malloc and kin: whose they are the name does not tell */
	FAMILY_JEMALLOC,
	FAMILY_TCMALLOC,
	FAMILY_MIMALLOC,
	FAMILY_RPMALLOC,
	FAMILY_SCUDO,
	FAMILY_TBB,
	FAMILY_RUST,  /* the functions that rustc puts before the allocator of a program */
	FAMILY_GIVEN, /* named by the user: a program's own pools */
	FAMILY_COUNT,
};

#define KNOWN_PREFIXES 3u
#define KNOWN_MALLOCS 2u

struct known_allocator {
	const char *name;                     /* for people */
	enum allocator_family family;         /* FAMILY_PLAIN: its functions have no names of their own */
	const char *prefixes[KNOWN_PREFIXES]; /* that it puts before the names of C functions */
	const char *mallocs[KNOWN_MALLOCS];   /* a module that has one of these functions contains it */
	const char *text;                     /* in the constant data of each version of it, NULL: none is known */
	const char *library; /* in the names of libraries that are this allocator and little else, NULL */
	bool never_seen;     /* nothing of it can be hooked */
};

/* Rows by number; NULL after the last one. */
const struct known_allocator *known_allocator(size_t number);
/* "jemalloc"; "" for FAMILY_PLAIN. */
const char *allocator_family_name(enum allocator_family family);
/* Whose text is in these bytes; NULL: none's. */
const struct known_allocator *known_allocator_in_text(const uint8_t *bytes, size_t count);
/* Which one a module with such a function contains; NULL: none. */
const struct known_allocator *known_allocator_with_malloc(const char *symbol);
/* Is a library of that file name an allocator and little else? */
bool known_allocator_library(const char *file_name);

/* malloc, its kin, and what the C library offers about them: what neighbours them belongs to the allocator too. */
bool catalogue_is_allocation_symbol(const char *name);
/* … and what an allocator offers under its own names: who calls these calls the allocator. */
bool catalogue_is_allocator_symbol(const char *name);
/* The functions of the module whose malloc and free everybody calls. */
bool catalogue_is_core_symbol(const char *name);
/* An allocator gets its memory from it. */
bool catalogue_is_source_symbol(const char *name);
/* What compilers put calls to into all of a program: the sanitizers' checks. */
bool catalogue_is_instrumentation_symbol(const char *name);
