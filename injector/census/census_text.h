/* SPDX-License-Identifier: MIT */
/* Between census_text.c and census_blocks_text.c: rows of the report for people. */
#pragma once

#include <stdio.h>

#include "base/size.h"
#include "census/census_report.h"

struct printing {
	const struct census *census;
	const struct census_view *view;
	FILE *out;
	bool swap, change; /* columns */
};

/* A line, cut to what fits; all text of the target's in it is made printable. */
void census_put_line(const struct printing *p, const char *text);
/* It is a sentence: on a terminal it goes on in further lines. */
void census_put_sentence(const struct printing *p, const char *text);

/* The largest live blocks by size, and by type. -ENOMEM. */
void census_put_sizes(const struct printing *p, unsigned rows);
/* Of another allocator. */
void census_put_other_sizes(const struct printing *p, unsigned rows);
int census_put_types(const struct printing *p, unsigned rows, struct err *e) WARN_UNUSED;
/* Who holds what is live. */
void census_put_holders(const struct printing *p, unsigned rows);
/* What nothing points to. */
int census_put_lost(const struct printing *p, unsigned rows, struct err *e) WARN_UNUSED;
