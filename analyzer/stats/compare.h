/* SPDX-License-Identifier: MIT */
/*
 * Growth of a figure: the difference of two sums over disjoint sets of blocks, so independent.
 *
 * The interval is that of Zou and Donner (2008, "Construction of confidence limits about effect measures", Statistics
 * in Medicine 27:1693-1702): with each sum's own interval (l, u), low = d - sqrt((x - l_x)^2 + (u_y - y)^2),  high = d
 * + sqrt((u_x - x)^2 + (y - l_y)^2). Many stacks are compared at once, so some would seem to grow by chance: those that
 * are called grown are chosen by Benjamini and Hochberg (1995), so that at most 1 - confidence of them on average are
 * false, and, where nothing grows, any is called with that probability at most. The lower ends of rows have the level
 * at which that procedure decided (Benjamini and Yekutieli 2005, "False discovery rate-adjusted multiple confidence
 * intervals", JASA 100:71-81): those of rows that are called grown are above 0, and of these ends at most so many are
 * false on average; where none is called, none of all rows is above 0.
 */
#pragma once

#include <stddef.h>

#include "stats/estimate.h"

/*
 * Numbers of blocks: lets both sides know the sizes that the samples of either show, before anything below is asked.
 * What is compared then are the blocks of those sizes; smaller ones may have come or gone (estimate.h: unseen). A block
 * of such a size has on each side the weight of that side's own rate. Nothing is done where one side has all blocks.
 */
void compare_share_sizes(struct estimate_sum *plus, uint64_t plus_rate, struct estimate_sum *minus,
                         uint64_t minus_rate);
/* The interval of plus - minus. */
struct estimate compare_interval(const struct estimate_sum *plus, const struct estimate_sum *minus, double confidence);
/* Its lower end where that is to be false with this probability at most. */
double compare_low(const struct estimate_sum *plus, const struct estimate_sum *minus, double tail);
/* One-sided p-value of "no growth": half of 1 - c for the confidence c at which the interval begins at 0; 1 if plus <=
 * minus. */
double compare_p_value(const struct estimate_sum *plus, const struct estimate_sum *minus);
/*
 * The largest p-value among n that Benjamini and Hochberg call significant at this level, of p-values that are not more
 * than 1; negative if none. Sorts p.
 */
double compare_threshold(double *p, size_t n, double level);
