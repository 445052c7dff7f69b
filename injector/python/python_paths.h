/* SPDX-License-Identifier: MIT */
/*
 * Where a running CPython looks for modules: sys.path of each of its interpreters, read from outside while it runs.
 * Nothing depends on it but what files are called, so what cannot be read, is no str, is too long or does not fit the
 * limits is left out. The target may change it meanwhile, and may make it what it wants.
 */
#pragma once

#include "python/python_object.h"

#define PYTHON_PATHS_BYTES (1ull << 20) /* budget of a look */
#define PYTHON_PATHS_WORK (8ull << 20)  /* bytes that are read: a fifth of a second at most */

/* Each text once, as in the dump (struct dump_path). To begin with: zeros. */
struct python_paths {
	char **list;
	uint32_t count; /* at most DUMP_PATHS_MAX */
	uint32_t bytes; /* of the texts, at most DUMP_PATHS_BYTES_MAX */
};

/*
 * Adds what there is now, the main interpreter's first. directory: that the target works in, "" if it is not known.
 * Fails as python_object.h says, for the main interpreter's sake alone; what was added before stays.
 */
int python_paths_read(struct python_paths *p, struct python_view *v, const char *directory, struct err *e) WARN_UNUSED;
void python_paths_done(struct python_paths *p);
