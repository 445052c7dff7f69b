/* SPDX-License-Identifier: MIT */
/* What the HTML report says of the whole: the head of the text report as text, totals, what intervals are made of, and
 * the timeline. */
#pragma once

#include "base/json.h"
#include "report/report.h"

/* name: of the dump; table: bytes of each grouping in its table at most; warning: one more, NULL: none. -ENOMEM. */
int html_head(const struct report *report, const char *name, size_t table, const char *warning,
              struct json *json) WARN_UNUSED;
/* The text report, in few rows. To be freed; NULL: out of memory. */
char *html_text(const struct report *report, const char *name);
/* The upper quantile of the normal distribution for a two-sided p-value, or 0. */
double html_quantile(double level);
