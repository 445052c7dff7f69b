/* SPDX-License-Identifier: MIT */
/*
 * Which growth in the tree of a comparison is more than chance. Its largest nodes are tested as the stacks of --diff
 * are, but for growth and shrinking: the p-value is twice the one-sided one. The page draws as grown or shrunk what is
 * so at the confidence that comes out, whatever it sums up.
 */
#pragma once

#include "html/html_tree.h"

#define HTML_TESTED_MAX 4000u

/* Two-sided p-values at which the growth of each figure is significant; negative: none is. tested: how many nodes.
 * -ENOMEM. */
int html_growth_levels(const struct html_tree *tree, double levels[FIGURE_COUNT], uint32_t *tested) WARN_UNUSED;
