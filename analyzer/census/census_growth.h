/* SPDX-License-Identifier: MIT */
/* What differs between two looks at a process: exact differences of counts, so there are no intervals. */
#pragma once

#include <stdio.h>

#include "census/census_input.h"

struct growth_row {
	uint32_t table;
	const char *kind, *name; /* of one of the inputs */
	uint64_t old_count, old_bytes, new_count, new_bytes;
};

struct census_growth {
	const struct census_input *old, *new;
	struct growth_row *rows; /* by table, in each those that grow most first, those that shrink most last */
	size_t count;
};

/* The inputs must outlive it. census_growth_done afterwards. -ENOMEM. */
int census_growth_make(struct census_growth *g, const struct census_input *old, const struct census_input *new,
                       struct err *e) WARN_UNUSED;
void census_growth_done(struct census_growth *g);

/* top: rows of each table, 0: all. */
void census_growth_text(const struct census_growth *g, size_t top, FILE *out);
void census_growth_json(const struct census_growth *g, FILE *out);
