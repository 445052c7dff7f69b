/* SPDX-License-Identifier: MIT */
/*
 * A directory of dumps, as memattach --system leaves it: the dumps, by their names, and who was not profiled and why
 * (memattach.system.*). Files of strangers: what is no regular file, or no dump, is passed over, and so are lines that
 * are not understood.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct machine_unseen {
	unsigned count;
	char *name, *why;
};

struct machine {
	char **paths; /* of dumps */
	size_t path_count;
	struct machine_unseen *unseen; /* of all runs, the most first in each */
	size_t unseen_count;
};

/* -ENOENT: there is no dump there; or -errno. machine_free afterwards. */
int machine_read(struct machine *m, const char *directory, struct err *e) WARN_UNUSED;
void machine_free(struct machine *m);
