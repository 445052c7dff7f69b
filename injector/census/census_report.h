/* SPDX-License-Identifier: MIT */
/* The report of --census on standard output. */
#ifndef MEMATTACH_CENSUS_REPORT_H
#define MEMATTACH_CENSUS_REPORT_H

#include <stdbool.h>

#include "census/census.h"

/* In lines of at most 80 columns, the largest regions first, or as JSON with all of them. -EIO: it was not written. */
int census_report(struct census *c, bool as_json, struct err *e) WARN_UNUSED;

#endif
