/* SPDX-License-Identifier: MIT */
/*
 * How good the chances are by which blocks were sampled, against the best for the same number of samples.
 *
 * Let a_Z blocks of Z bytes be allocated, of which l_Z live. Sampled with p_Z, the estimate of the live bytes has the
 * variance sum l_Z Z^2 (1 - p_Z) / p_Z, at the cost of sum a_Z p_Z samples. For a given cost the least variance is
 * where the derivatives are in one proportion (Lagrange): l_Z Z^2 / p_Z^2 = constant * a_Z, so
 *
 *   p_Z = min(1, k Z sqrt(l_Z / a_Z))
 *
 * (convex in 1 / p, so this is the minimum; k by bisection). Where the share of blocks that live does not depend on
 * their size, that is p proportional to Z, what a Poisson process over bytes does but for sizes near the rate.
 *
 * a_Z and l_Z are estimates in classes of size, four to a doubling. Neighbours share their survival l / a until they
 * have 30 samples, and it is taken as (live samples + 1) / (samples + 2): else the best chances would follow the noise,
 * and seem better than they are.
 */
#ifndef MEMATTACH_EFFICIENCY_H
#define MEMATTACH_EFFICIENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-size blocks count as one byte: 2^0 to 2^64 in four classes each. */
#define EFFICIENCY_CLASSES 257

struct efficiency_class {
	uint64_t samples, live_samples;
	double allocated, live; /* blocks, estimated */
	double allocated_bytes; /* estimated */
	double live_square;     /* sum of Z^2 over the live blocks, estimated */
	double variance;        /* of the live bytes, as sampled */
};

struct efficiency {
	struct efficiency_class classes[EFFICIENCY_CLASSES];
};

/* One group of classes that share their survival, smallest sizes first. */
struct efficiency_group {
	double least, most; /* sizes: at least, less than */
	double allocated, live, survival;
	double now, best; /* mean chance of an allocation to be sampled */
};

struct efficiency_result {
	double samples;               /* expected: all that was allocated */
	double error_now, error_best; /* standard error of the live bytes */
	double ratio;                 /* variance at best / now, at most 1 */
	double samples_best;          /* that the best chances need for the error of now */
	struct efficiency_group groups[EFFICIENCY_CLASSES];
	size_t group_count;
};

/* Adds one sample of size bytes that was taken with p. */
void efficiency_add(struct efficiency *efficiency, uint64_t size, double p, bool live);

/* scale: all that was allocated in relation to what the samples here say (1 unless records are gone). False if there is
 * nothing to compare: no sample lives, or all blocks were recorded. */
bool efficiency_solve(const struct efficiency *efficiency, double scale, struct efficiency_result *result);

#endif
