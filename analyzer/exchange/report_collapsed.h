/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, one a line: frames from the outermost to the innermost, separated by semicolons, a blank and the
 * figure that is sorted by; of a comparison two of them, before and after. What was inlined ends in _[i].
 */
#pragma once

#include <stdio.h>

#include "report/report.h"

/* -ENOMEM. */
int report_collapsed(const struct report *report, FILE *out) WARN_UNUSED;
