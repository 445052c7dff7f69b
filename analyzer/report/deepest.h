/* SPDX-License-Identifier: MIT */
/*
 * The function that a figure leads to: of those below which more than half of it was allocated, the deepest one. Any
 * two such functions share stacks, so one of them is nearer to the allocations. Functions are those that are shown
 * (folding.h); the outermost one of a stack, main or its like, is none.
 */
#pragma once

#include "report/report.h"

/* So many rows are looked at, the first ones: if there are more, the share is a lower bound. */
#define DEEPEST_ROWS 2000u

struct deepest {
	uint64_t place;                  /* of the row that has most of it; */
	const struct location *location; /* NULL: there is no such function */
	double share;
};

/* -ENOMEM. */
int deepest_find(const struct report *report, enum report_figure figure, struct deepest *deepest) WARN_UNUSED;
