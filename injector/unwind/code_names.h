/* SPDX-License-Identifier: MIT */
/* Names by which allocator_code.c knows what a function is. */
#ifndef MEMATTACH_CODE_NAMES_H
#define MEMATTACH_CODE_NAMES_H

#include <stdbool.h>
#include <string.h>

/* An allocator gets its memory from it. */
static inline bool is_source(const char *name)
{
	static const char *const names[] = { "mmap", "mmap64", "__mmap", "sbrk", "__sbrk", "syscall" };

	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* The functions of the module whose malloc and free everybody calls. */
static inline bool is_core(const char *name)
{
	return !strcmp(name, "malloc") || !strcmp(name, "free") || !strcmp(name, "calloc") || !strcmp(name, "realloc");
}

/* What compilers put calls to into all of a program: the sanitizers' checks. */
static inline bool is_instrumentation(const char *name)
{
	static const char *const prefixes[] = { "__asan_", "__sanitizer_", "__lsan_", "__ubsan_", "__hwasan_" };

	for (unsigned i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

#endif
