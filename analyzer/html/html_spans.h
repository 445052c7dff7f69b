/* SPDX-License-Identifier: MIT */
/*
 * When the blocks of each node of the HTML report came and went, so that the page can show those of a span of the
 * timeline. It is one list of numbers for each list of rows that html_data_nodes writes, in the same order: the number
 * of cells, and of each
 *
 *   step in which the blocks came; step in which they went + 1, one more for after the last moment, 0: they are live;
 *   samples; of one sample its bytes and weight, of several bytes, their standard error, those of the samples, number,
 *   its standard error, the largest weight.
 *
 * A step is so many moments of the timeline, more where the file would be too large.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "html/html_tree.h"

struct html_spans {
	char *text;  /* NULL: there are none, or they do not fit; to be freed */
	size_t step; /* moments */
};

/* How many bytes of the page are to be kept for them. */
size_t html_spans_bytes(const struct report *report);
/* -ENOMEM. */
int html_spans_make(const struct html_tree *tree, size_t bytes, struct html_spans *spans) WARN_UNUSED;
