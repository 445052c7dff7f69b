/* SPDX-License-Identifier: MIT */
/* Pages of code that are set apart from their mapping (touch/patches/code_pages.h). */
#ifndef MEMATTACH_CODE_RUNS_H
#define MEMATTACH_CODE_RUNS_H

#include <stdint.h>
#include <stdlib.h>

#include "maps/maps.h"

#define CODE_RUNS_MAX 16u /* further ones stay in their mapping */

struct code_run {
	uint64_t start, end;
	struct mapping file; /* what is mapped there, from start on; without its path */
	unsigned char *copy; /* what was there; NULL: the private copies are to stay */
};

struct code_runs {
	struct code_run list[CODE_RUNS_MAX];
	unsigned count;
};

static inline void code_runs_free(struct code_runs *runs)
{
	for (unsigned i = 0; i < runs->count; i++)
		free(runs->list[i].copy);
	runs->count = 0;
}

#endif
