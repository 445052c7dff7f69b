/* SPDX-License-Identifier: MIT */
/*
 * The stacks of a report as a tree of functions, for the HTML report: a node for each function below those that called
 * it, outermost first, and the rows that end there. Where it is too large for the page, the nodes with the least of the
 * totals go: what they hold is summed up below the nearest caller that stays, so every sum stays what it is.
 */
#pragma once

#include "base/json.h"
#include "output/frame_table.h"
#include "output/output_rows.h"

#define HTML_DEPTH_MAX 512u /* of nodes; what is deeper is summed up */
#define HTML_ROOT 0u

struct html_node {
	uint32_t parent, frame;
	uint32_t child, sibling; /* the first child, the next child of the parent; 0: none */
	uint32_t rows;           /* the first row that ends here, + 1; 0: none */
	uint32_t small;          /* the same, of those below that were left out */
	uint32_t depth;
	bool kept;
	double weight; /* the largest part of a total that a row has, summed up over all rows here and below */
};

struct html_tree {
	const struct report *report;
	struct output_rows rows;
	struct frame_table frames;
	struct folded_stack stack; /* of one row after the other */
	struct html_node *nodes;   /* parents before their children; nodes[HTML_ROOT] is no function */
	uint32_t count, kept;
	struct map child_of; /* parent and frame -> node */
	uint32_t *next_row;  /* of the same node, + 1; 0: the last one */
	uint32_t small_frame;
	size_t small_stacks; /* that were summed up, */
	double small_weight; /* and the part of the totals that is the most which one of their nodes had */
};

/* What some rows have in all. */
struct html_sums {
	struct report_row row;
	struct row_change change;
	size_t stacks;
};

/* -ENOMEM; html_tree_done is to be called in any case. */
int html_tree_init(struct html_tree *tree, const struct report *report) WARN_UNUSED;
void html_tree_done(struct html_tree *tree);
/* Leaves nodes out until what html_rows_text writes of the rest has at most so many bytes. -ENOMEM. */
int html_tree_fit(struct html_tree *tree, size_t bytes) WARN_UNUSED;
/* What was summed up to keep the file small, as member "coarse" of an object, if anything was. */
void html_tree_coarse(const struct html_tree *tree, struct json *json);
/* Adds up the rows of a list: nodes[].rows or nodes[].small. */
void html_tree_sum(const struct html_tree *tree, uint32_t rows, struct html_sums *sums);
/* The nodes that stay which have most, the root first, to be freed; *count is how many there may be, and are. NULL: out
 * of memory. */
uint32_t *html_tree_heaviest(const struct html_tree *tree, uint32_t *count);
