/* SPDX-License-Identifier: MIT */
/*
 * Estimates from samples, and intervals that hold the truth as often as they say.
 *
 * A block of S bytes is sampled with p = 1 - exp(-S / R). A sum of x over all blocks (x = S: bytes, x = 1: count) is
 * estimated without bias by the sum of x / p over the samples (Horvitz and Thompson 1952), whose variance is estimated
 * without bias by the sum of x^2 (1 - p) / p^2. Each sample is weighted first, then summed; variances of disjoint sets
 * of blocks add up, whatever their rates.
 *
 * Interval: Fay and Feuer (1997), "Confidence intervals for directly standardized rates: a method based on the gamma
 * distribution", Statistics in Medicine 16:791-801. With y the estimate, v its variance and w the weight of the next
 * sample, the one not seen:
 *
 *   low  = v / (2y) * chi2(alpha / 2; 2 y^2 / v)
 *   high = s + (v + w^2) / (2 (u + w)) * chi2(1 - alpha / 2; 2 (u + w)^2 / (v + w^2)),  u = y - s
 *
 * where s is the sum of x over the samples, which is certain. (With y for u and without s, as the paper has it, blocks
 * of 4 to 14 R are too regular for the truth: one that was missed is not within the end, and 88 % cover at worst.)
 *
 * The weight of the next sample, of bytes: S / p tends to R for S much below R, and blocks far above R do not stay
 * unseen, so w = R.
 *
 * A number of blocks is harder: 1 / p is R / S for small S, so blocks so small that none was sampled may be many. No
 * interval can both cover them and be of use (docs/statistics.md has the proof), so there are two statements:
 *
 *   - the interval is about the blocks whose weight is at most the largest one of the samples in this sum, which is w:
 *     those of the size of its smallest sample and above (at one rate);
 *   - unseen is how many blocks there may be below that size, if they have ESTIMATE_HIDDEN_BYTES or more. Put all
 * blocks in the order of their size: m of them come before the smallest that was sampled with a probability of (1 -
 * p)^m <= exp(-m p) at most, p being that of ESTIMATE_HIDDEN_BYTES. So, one-sided, they are fewer than -ln(alpha) / p,
 * whatever the sizes are.
 *
 * Where a sum has no sample, w is what is known otherwise of the sizes (other samples of the same stack); if nothing
 * is, the interval is that of blocks of ESTIMATE_HIDDEN_BYTES, and nothing else is unseen.
 *
 * What is added to the seen blocks of a count is a negative binomial number: n sampled blocks of a size leave n (1 - p)
 * / p unseen on average, with the variance n (1 - p) / p^2. The gamma distribution stands for it (for small p it is
 * one), and both ends are whole numbers, rounded outward; where they are not rounded, half a block to either side makes
 * up for the steps.
 *
 * No low end is below what was seen (sum of x over the samples). If every block is recorded (R = 1) w is 0 and the
 * interval has no width; blocks that are certain to be sampled at R > 1 leave room for others that are not.
 *
 * Parts of one block, a mapping of which some pages are gone, are in the sample together or not at all. They have the p
 * of the block, and what they add to a sum is one x: to the variance (x1 + x2 + ...)^2 (1 - p) / p^2, which is more
 * than the sum of the squares. Of a number of blocks they are one.
 *
 * Without a sample (y = v = 0) the formula gives [0, -ln(alpha / 2) w]: 3.69 R at 95 %. That is the upper half of a
 * two-sided interval; taking the one-sided limit -ln(alpha) w = 3.00 R there would let the coverage fall to 93.5 % near
 * B = 3 R. The one-sided limit is the detection limit: the probability to see no sample among B bytes is exp(-B / R),
 * so a stack that shows no sample holds less than 3 R with 95 % confidence.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct estimate_sum {
	double value;    /* sum of x / p */
	double variance; /* sum of x^2 (1 - p) / p^2 */
	double seen;     /* sum of x: a floor for the truth */
	double next;     /* weight of the next sample; 0: nothing can be unseen */
	uint64_t samples;
	double hidden; /* of counts: weight of the smallest block that may be hidden; 0: none is, or a sum of bytes */
};

struct estimate {
	double value;
	double error;     /* standard error */
	double low, high; /* interval; of a number of blocks whole numbers */
	double unseen;    /* of a number of blocks: so many smaller ones than were sampled may be missing, one-sided */
	bool exact;       /* nothing can be unseen */
};

#define ESTIMATE_CONFIDENCE 0.95
/* Blocks smaller than this are taken into account in numbers of blocks only if they were sampled. */
#define ESTIMATE_HIDDEN_BYTES 16u

/* p of a block of size bytes at mean interval rate: 1 - exp(-S / R), S counted as 1 if 0; 1 if rate <= 1. */
double estimate_probability(uint64_t size, uint64_t rate);

/* The size of blocks of that weight, 1 / p, and the weight of blocks of that size; 0 for 0: none is known, or all are
 * certain to be seen. */
double estimate_size(double weight, uint64_t rate);
double estimate_weight(double size, uint64_t rate);

/* Adds one sample of value x that was taken with probability p; the caller keeps sum->next. */
void estimate_add(struct estimate_sum *sum, double x, double p);

/*
 * A part of a block. Parts of a block come one after the other, those that stay longest first; rest: sum of x over the
 * parts that the sum has already, 0: it is the first one, or a block of its own. The first one stands for the block
 * where blocks are counted.
 */
void estimate_add_part(struct estimate_sum *sum, double x, double p, double rest);
/* What the part adds to the variance of such a sum. */
static inline double estimate_part_variance(double x, double p, double rest)
{
	return x * (x + 2 * rest) * (1 - p) / (p * p);
}

/* What a sampled block, whose size gave p, adds to a sum of counts. */
struct estimate_block {
	double p;
	double weight; /* 1 / p */
	double variance;
};
struct estimate_block estimate_block(double p);
/* Adds one, and raises sum->next to its weight. */
void estimate_add_block(struct estimate_sum *sum, double p);

/* Adds a sum over other blocks. What a number of blocks without a sample knows of sizes counts only if neither has one.
 */
void estimate_merge(struct estimate_sum *into, const struct estimate_sum *from);

/* Raises sum->next to weight, if it is larger. */
void estimate_expect(struct estimate_sum *sum, double weight);

/* Makes a sum one of counts, and says at which rate blocks may be hidden from it. */
void estimate_hide(struct estimate_sum *sum, uint64_t rate);

/* The estimate with its interval; 0 < confidence < 1. */
struct estimate estimate_interval(const struct estimate_sum *sum, double confidence);

/*
 * Of many stacks those are listed, and come first, that happen to have many samples: that their intervals hold for each
 * of them alone is of no help then. So the error of the lower ends is divided among all stacks, to each as much as it
 * has of the whole: the end L is where more samples than there are have the probability (1 - confidence) / 2 * L /
 * whole. A stack that holds T exceeds T so with (1 - confidence) / 2 * T / whole at most, and these add up to (1 -
 * confidence) / 2: all lower ends hold together, of however many stacks, listed or not. Little is lost for large
 * stacks, as there can be few of them. The estimates chose no stack for having too few samples, so upper ends stay.
 */
/* The part L / whole of a sum; whole: what all of them hold together. */
double estimate_listed_share(const struct estimate_sum *sum, double confidence, double whole);
/* The interval of a sum over the blocks of a stack that has this part of the error of the lower ends. */
struct estimate estimate_interval_listed(const struct estimate_sum *sum, double confidence, double share);

/* The same with ends that need not be whole numbers, so that they move with the confidence: for differences. */
struct estimate estimate_interval_smooth(const struct estimate_sum *sum, double confidence);
/* One end of it, for half the work. */
double estimate_low_smooth(const struct estimate_sum *sum, double confidence);
double estimate_high_smooth(const struct estimate_sum *sum, double confidence);

/* How many blocks of ESTIMATE_HIDDEN_BYTES or more, of which that weight is, may be smaller than all that were sampled.
 */
double estimate_unseen_blocks(double hidden, double confidence);

/* What a sum without a sample holds less than, one-sided: -ln(1 - confidence) * next. */
double estimate_detection_limit(double next, double confidence);
