/* SPDX-License-Identifier: MIT */
/* The report of --census: in lines of at most 80 columns, or as JSON with all there is. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "census/census.h"
#include "census/census_by.h"

#define CENSUS_LIMIT_LEAST (1ull << 60) /* cgroups of version 1 say so much where there is no limit */

struct census_view {
	const struct census *before; /* an earlier look, or NULL */
	uint64_t room;               /* what its cgroups have left */
	enum census_by by;
	bool json;
	FILE *out;
};

/* -EIO: it was not written; -ENOMEM. */
int census_report(const struct census *c, const struct census_view *view, struct err *e) WARN_UNUSED;

/* What it consists of. */
int census_text(const struct census *c, const struct census_view *view, struct err *e) WARN_UNUSED;
void census_json(const struct census *c, const struct census_view *view);
/* Bytes of resident memory that are added in a minute, by both looks. */
double census_growth(const struct census *c, const struct census *before);
