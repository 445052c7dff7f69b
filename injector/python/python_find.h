/* SPDX-License-Identifier: MIT */
/*
 * Finds CPython in a process: the variable _PyRuntime, to which all of an interpreter hangs, by its exported symbol, by
 * the section .PyRuntime that 3.10 and later put it into, or by .symtab of the program or of a library whose name
 * has "python" in it. And which version it is, and how it was built.
 */
#pragma once

#include "elf/modules.h"

#define PYTHON_RUNTIMES_MAX 4u
#define PYTHON_FIND_BYTES (128ull << 20) /* budget of a search */
#define PYTHON_FIND_WORK (2ull << 30)

struct python_version {
	uint32_t minor;   /* of 3; 0: it could not be told */
	int patch;        /* -1: it could not be told */
	char release;     /* 'f' final; 'a', 'b', 'c': made before the release of the minor version; '?' not told */
	bool flags_known; /* the next two are */
	bool debug;       /* Py_DEBUG */
	bool free_threaded;
	bool describes_itself; /* it begins with _Py_DebugOffsets */
	char text[24];         /* "3.11.2", "3.15.0b1", "3.9" */
};

struct python_runtime {
	const struct elf_module *module;
	uint64_t address; /* of _PyRuntime */
	struct python_version version;
};

/*
 * tm: its reads and what this takes are charged to its budget, which must be one. *count is 0 where there is no
 * CPython. The modules must stay.
 */
int python_find(struct python_runtime *list, uint32_t *count, const struct modules *modules, const struct maps *maps,
                const struct target_memory *tm, struct err *e) WARN_UNUSED;

/* NULL: its variables stay mapped as long as the process lives, so that code inside of it may read them; else why not.
 */
const char *python_stay_refusal(const struct python_runtime *r, const struct modules *modules, struct budget *budget);

/* NULL: the structures of this version and build are known, python_release_find() has them; else why they are not. */
const char *python_version_refusal(const struct python_version *v);
