/* SPDX-License-Identifier: MIT */
/*
 * A report as one HTML file that needs nothing else: a flame graph, a table of functions, a timeline, and in a browser
 * without scripts the text report. Its scripts and its style are those of html/, named by their hashes in a policy that
 * allows nothing else, no connection either; all names come as data, of which the page makes text. At most HTML_BYTES,
 * whatever the report holds (html_tree.h says what gives way).
 */
#pragma once

#include "report/report.h"

#define HTML_BYTES 8000000u

/* name: of the dump. -ENOMEM. */
int report_html(const struct report *report, const char *name, FILE *out) WARN_UNUSED;
