/* SPDX-License-Identifier: MIT */
/*
 * What --leaks says, for the HTML report of a whole session: a member "leaks" of an object, with
 *
 *   verdict, note: its first sentence, and what the test does not know
 *   age: in seconds, blocks older than which count as old
 *   rows: the stacks that have old blocks, in the order of --leaks, as many as there is room for; each a list: who
 * holds them, what the row is called, 2: a leak, 1: it grows, or 0; of old bytes, old blocks and, in a second, bytes:
 *         estimate and ends of the interval, as whole numbers; how many samples are old
 *   more: how many others there are
 *
 * and as another one, "leakEntries", which of the lists of rows in the page's tree (html_data_each) has each of these.
 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "html/html_tree.h"

#define HTML_LEAK_ROWS 200u
#define HTML_LEAK_ENTRY_BYTES 11u /* of each at most */

/* Nothing where leaks are not looked for. bytes: of the rows at most. -ENOMEM. */
int html_leaks(const struct report *report, size_t bytes, struct json *json) WARN_UNUSED;
int html_leak_entries(const struct html_tree *tree, struct json *json) WARN_UNUSED;
