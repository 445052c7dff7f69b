/* SPDX-License-Identifier: MIT */
/* Samples heaps that are given as classes of equal blocks, block by block with the right probability but in O(samples).
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "stats/estimate.h"

struct random_source {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t exponential_random(struct random_source *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* In (0, 1). */
static inline double random_unit(struct random_source *r)
{
	return ((double)(exponential_random(r) >> 11) + 0.5) * 0x1p-53;
}

struct block_class {
	uint64_t size;
	uint64_t blocks;
};

struct sampled_heap {
	struct estimate_sum bytes, count;
	double true_bytes, true_count;
};

/* The truth of the two statements about a number of blocks: those that weigh at most next, and the others. */
struct heap_split {
	double shown;
	double hidden; /* of ESTIMATE_HIDDEN_BYTES or more */
};

static inline struct heap_split heap_split(const struct block_class *classes, int n, uint64_t rate,
                                           const struct estimate_sum *count)
{
	double next = count->samples ? fmax(count->next, 1) : INFINITY; /* without a sample the interval is about all */
	struct heap_split split = { 0, 0 };

	for (int c = 0; c < n; c++) {
		if (1 / estimate_probability(classes[c].size, rate) <= next * (1 + 1e-12))
			split.shown += (double)classes[c].blocks;
		else if (classes[c].size >= ESTIMATE_HIDDEN_BYTES)
			split.hidden += (double)classes[c].blocks;
	}
	return split;
}

/* Which statements about a number of blocks hold. */
struct heap_verdict {
	bool interval; /* low <= all blocks, and those of the sizes that samples show <= high */
	bool unseen;   /* those that no sample shows are not more than said */
	bool all;      /* low <= all blocks <= high + unseen */
};

static inline struct heap_verdict heap_judge(const struct estimate *x, const struct heap_split *split, double truth)
{
	return (struct heap_verdict){
		.interval = x->low <= truth * (1 + 1e-12) && split->shown * (1 - 1e-12) <= x->high,
		.unseen = split->hidden <= x->unseen,
		.all = x->low <= truth * (1 + 1e-12) && truth * (1 - 1e-12) <= x->high + x->unseen
	};
}

/* The gap between two sampled blocks of a class is geometric. */
static inline void heap_sample(struct sampled_heap *heap, const struct block_class *classes, int n, uint64_t rate,
                               struct random_source *random)
{
	*heap = (struct sampled_heap){ 0 };
	for (int c = 0; c < n; c++) {
		double p = estimate_probability(classes[c].size, rate);
		double log_q = log1p(-p);
		heap->true_bytes += (double)classes[c].size * (double)classes[c].blocks;
		heap->true_count += (double)classes[c].blocks;
		double at = p < 1 ? floor(log(random_unit(random)) / log_q) : 0;
		while (at < (double)classes[c].blocks) {
			estimate_add(&heap->bytes, (double)classes[c].size, p);
			estimate_add_block(&heap->count, p);
			at += 1 + (p < 1 ? floor(log(random_unit(random)) / log_q) : 0);
		}
	}
	heap->bytes.next = rate > 1 ? (double)rate : 0;
	estimate_hide(&heap->count, rate);
}
