/* SPDX-License-Identifier: MIT */
/*
 * The tree of the HTML report as data: functions as JSON, nodes as one list of numbers, which the page reads one after
 * the other (html/model.js). Of each node in turn, callers before what they call:
 *
 *   2 * function + 1 if rows end there, how many levels up from the node before its caller is, and of the rows:
 *   their number, 2 * the live samples that were lost + 1 if their stack is not known, if any was lost what they weigh
 *   (bytes, standard error, those of the samples, number, its standard error, weight of one), the sums of live blocks,
 * those of allocated blocks, and of a comparison of what has come (unless that is all there is) and of what has gone.
 *
 * Sums of blocks: samples, and if there are any: bytes, their standard error, those of the samples, number, its
 * standard error; then the weight of the next sample in numbers (in bytes all sums of a side have the same). The list
 * ends with -1. Standard errors have four digits, so intervals are right to a tenth of a percent.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

struct html_tree;
struct estimate_sum;
struct name_text;

#define HTML_ROWS_TEXT 1200u
#define HTML_SUMS_TEXT 200u

/* A list of rows; returns how many bytes it wrote. */
size_t html_rows_text(const struct html_tree *tree, uint32_t rows, char text[HTML_ROWS_TEXT]);
/* What is written of a node beside its rows, of a function and of a module at most. */
size_t html_node_bytes(const struct html_tree *tree);
size_t html_frame_bytes(const struct html_tree *tree, uint32_t frame);
size_t html_module_bytes(const struct html_tree *tree, uint32_t image);
/* A name as the page has it, clean and of limited length: as a string, -ENOMEM; and how many bytes that has at most. */
int html_put_name(struct json *json, const char *name, struct name_text *buffer) WARN_UNUSED;
size_t html_name_bytes(const char *name);
/* Whether what has come is all there is. */
bool html_all_has_come(const struct html_tree *tree);
/* The functions, as members "frames" and "modules" of an object: the first one stands for small stacks. order: of the
 * functions, their number + 1, filled in for html_data_nodes. -ENOMEM. */
int html_data_frames(const struct html_tree *tree, struct json *json, uint32_t *order) WARN_UNUSED;
void html_data_nodes(const struct html_tree *tree, const uint32_t *order, FILE *out);
/* Calls put for each list of rows, in the order in which html_data_nodes writes them. */
void html_data_each(const struct html_tree *tree, void (*put)(void *arg, uint32_t rows), void *arg);
/* Sums of some blocks at one time (html_spans.h); returns how many bytes it wrote. */
size_t html_cell_text(const struct estimate_sum *bytes, const struct estimate_sum *count, char text[HTML_SUMS_TEXT]);
