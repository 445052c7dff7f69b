/* SPDX-License-Identifier: MIT */
/*
 * The rows of the table of the HTML report: those of --by function, --by file and --by module, summed up from all
 * stacks of the report, since the tree of the page (html_tree.h) may have small stacks summed up. They are a member
 * "table" of an object, which has of each grouping
 *
 *   rows: the largest ones, each a list: name, path of the module (null: none, or several), whether it has anything of
 *         its own, and of its own and in all, of each figure: samples, estimate, the ends of the interval
 *   more: how many others there are, each with less than the part `most` of every total
 *   rest: what these have of their own together, of each figure
 *
 * and those of --by thread, --by size and --by lifetime, all of them, each a list: name, and what it has of each
 * figure; threads, types and holders have no figures of what was allocated in all.
 *
 * A comparison has no such member: --by knows no growth.
 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "report/report.h"

/* Of each grouping at most; fewer where names are long. */
#define HTML_TABLE_ROWS 1000u
#define HTML_TABLE_BYTES 400000u

/* bytes: of each grouping at most. -ENOMEM. */
int html_table(const struct report *report, size_t bytes, struct json *json) WARN_UNUSED;
/* Of each figure of a row: samples, estimate, the ends of the interval, as whole numbers that are rounded outward. */
void html_figures(const struct report *report, const struct report_row *row, int figures, struct json *json);
