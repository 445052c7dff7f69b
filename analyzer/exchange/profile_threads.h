/* SPDX-License-Identifier: MIT */
/*
 * The figures of a row by the threads that allocated: whole numbers whose sum is the row's. What is live is known of
 * all threads; of what was freed, what the history has no record of is of no thread.
 */
#pragma once

#include "report/report.h"

struct profile_part {
	const char *thread; /* its name; "": not known */
	int64_t values[FIGURE_COUNT];
	uint64_t samples[FIGURE_COUNT];
};

struct profile_split {
	struct profile_part *parts; /* to be freed */
	size_t count;               /* of those that have something */
};

/* whole: the row's figures, samples those they rest on; row NULL: nothing is known of threads. -ENOMEM. */
int profile_split(const struct report *report, const struct report_row *row, const struct profile_part *whole,
                  struct profile_split *split) WARN_UNUSED;
