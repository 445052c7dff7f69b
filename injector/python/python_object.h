/* SPDX-License-Identifier: MIT */
/*
 * Objects of a running CPython: their types, strings, bytes, code objects. Each read is checked: an object must have
 * the type that it should have, sizes have limits, and what was read is charged to the budget. What is found may have
 * changed or gone a moment later; callers try again.
 */
#pragma once

#include "elf/modules.h"
#include "dump/python_lines.h"
#include "python/python_releases.h"

#define PYTHON_NAME_CHARS 240u /* what is read of a name */
#define PYTHON_FILE_CHARS 1000u
#define PYTHON_NAME_TEXT (4 * PYTHON_NAME_CHARS + 4) /* as UTF-8, with "…" and NUL */
#define PYTHON_FILE_TEXT (4 * PYTHON_FILE_CHARS + 4)

enum python_kind {
	PYTHON_CODE,
	PYTHON_STR,
	PYTHON_BYTES,
	PYTHON_FRAME,
	PYTHON_NONE,
	PYTHON_DICT,
	PYTHON_LIST,
	PYTHON_KINDS
};

/* An interpreter that is looked at. */
struct python_view {
	const struct modules *modules;
	struct target_memory memory; /* with a budget */
	const struct python_release *release;
	uint64_t runtime;             /* address of _PyRuntime */
	uint64_t types[PYTHON_KINDS]; /* of the types, 0: not yet seen */
};

/* A code object, its type proved. Strings and tables are addresses. */
struct python_code {
	uint64_t address;
	uint64_t start; /* of the code; 0: 3.9, 3.10 */
	uint32_t bytes; /* of the code */
	int32_t first_line;
	int32_t first_traceable; /* code units */
	uint64_t name, qualified_name, file, lines;
};

/*
 * All return -EINVAL where something is not as it should be, -EFAULT where it is not readable: the text says what. Any
 * other error is none of the object's: -E2BIG the budget, -ESRCH, -ENOMEM.
 */

static inline bool python_is_of_objects(int rc)
{
	return rc == -EINVAL || rc == -EFAULT;
}

/*
 * Is type the one of that kind? It must be in data of a module, be named so, and be of the type "type"; where a module
 * exports the kind's symbol it must be that one. The first one that fits stays the only one.
 */
int python_type_check(struct python_view *v, uint64_t type, enum python_kind kind, struct err *e) WARN_UNUSED;
/* The object at address has that type. */
int python_object_check(struct python_view *v, uint64_t address, enum python_kind kind, struct err *e) WARN_UNUSED;

/* A str, its first characters as UTF-8; more are shown by "…". text[4 * chars + 4]. */
int python_string_read(struct python_view *v, uint64_t address, char *text, size_t chars, struct err *e) WARN_UNUSED;
/* The same; one that has more characters is -EINVAL. */
int python_string_whole(struct python_view *v, uint64_t address, char *text, size_t chars, struct err *e) WARN_UNUSED;

int python_code_read(struct python_view *v, uint64_t address, struct python_code *code, struct err *e) WARN_UNUSED;
/*
 * The names and the table of lines are what they should be. function[PYTHON_NAME_TEXT], file[PYTHON_FILE_TEXT], and the
 * line of the instruction at offset; PYTHON_NO_LINE.
 */
struct python_place {
	char function[PYTHON_NAME_TEXT]; /* qualified, where the version knows that */
	char file[PYTHON_FILE_TEXT];
	int32_t line;
};
int python_code_place(struct python_view *v, const struct python_code *code, int64_t offset, struct python_place *place,
                      struct err *e) WARN_UNUSED;
