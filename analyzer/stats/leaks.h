/* SPDX-License-Identifier: MIT */
/*
 * Which stacks leak. Everything that was allocated since the attach grows at first, so growth alone says nothing; what
 * tells a leak is that old blocks become more.
 *
 * Let M(t) be the number of a stack's blocks that are older than an age A at time t. In a steady state M stops growing
 * once the session is longer than the lifetimes, whatever they are; of a leak it grows for ever. From the middle m of
 * [start + A, end] to the end, M changes by gained - lost, where
 *     gained  blocks that are alive at the end, older than A then, but were not at m
 *     lost    blocks that were older than A at m and are freed since
 * Both are counts of disjoint sets of samples, so, if allocations come as a Poisson process, independent and Poisson
 * with equal means in a steady state: given their sum, gained is binomial (1/2). The p-value is the upper tail of that
 * (a conditional test, exact for any distribution of the lifetimes; Przyborowski and Wilenski 1940).
 *
 * A cache that is filled once at the start gains nothing. One that is filled in one go later gains all at once, and is
 * no leak either. So what stays must have been born all the time since the growth began: from its onset (the birth of
 * the twentieth part of the old blocks) to the end, time is cut into quarters, and each must have one birth at least
 * and a quarter of what the old ones had in such a time. A leak may come in bursts, and begin late. Stacks that fail
 * this take no part in the choice among many stacks, else the certain growth of a few would lower the bar for the rest.
 * What comes more and more slowly is a cache that fills, as far as can be seen.
 *
 * Growth is not yet a leak: it is that of any steady state whose blocks live for a third of the session and more.
 * Blocks that leak are not freed. So old ones are watched: together they have lived for E since they became old, and D
 * of them were freed, a Poisson count, so with the confidence 1 - alpha their mean residual life is more than E /
 * (upper limit of D). It has to exceed the session, at the age or at twice the age (of a stack that has short-lived
 * blocks, too, these are gone by then), each at half of alpha. Else the stack grows, and a longer session decides.
 *
 * What lives longer than the session cannot be told from a leak: ages are cut off (right-censored) at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/estimate.h"

/* Times of one session, all in its stamps. */
struct leak_window {
	uint64_t start, middle, end, age;
};

#define LEAK_PARTS 4
#define LEAK_BINS 24
#define LEAK_AGES 2

/* What blocks did that had got so old. */
struct leak_watch {
	double watched; /* how long they have been, in sessions */
	uint64_t freed;
};

struct leak_tally {
	struct estimate_sum bytes, count; /* live blocks older than the age */
	uint64_t gained, lost;
	uint32_t births[LEAK_BINS];         /* of those that are live at the end, by equal parts of the session; */
	uint32_t old_bins;                  /* the first of these have those that are old */
	struct leak_watch watch[LEAK_AGES]; /* at the age, at twice the age */
	uint64_t kept;                      /* history records */
	uint64_t dropped;                   /* freed samples that the history has lost */
	uint64_t oldest;                    /* age of the oldest, in nanoseconds */
};

enum leak_verdict {
	LEAK_NONE,    /* no old block, or no more of them than before */
	LEAK_STEP,    /* more, but they came in one go */
	LEAK_FILLING, /* more, but they come more and more slowly */
	LEAK_GROWTH,  /* more, all the time */
};

/* age 0: a third of the session. */
struct leak_window leak_window(uint64_t start, uint64_t end, uint64_t age);
/*
 * A sample that was born and freed at these stamps, freed 0: live at the end. The test compares numbers of samples, so
 * it takes only those that would be samples at the largest rate of the session as well (thinning.h): comparable says
 * that it is one.
 */
struct leak_sample {
	uint64_t size;
	uint32_t rate;
	double p;
	bool comparable;
	uint64_t born, freed;
};
void leak_add(struct leak_tally *tally, const struct leak_window *window, const struct leak_sample *sample);
void leak_merge(struct leak_tally *into, const struct leak_tally *from);
/* The probability of this much growth, or more, in a steady state. */
double leak_p_value(const struct leak_tally *tally);
/* What an unusual p-value means, if it is one. */
enum leak_verdict leak_shape(const struct leak_tally *tally);
/* How long old blocks live on, in sessions: the mean is more than that. */
double leak_residual_life(const struct leak_tally *tally, double confidence);
/* How many times the session would have to last to tell a leak from blocks that live long; INFINITY: not known. */
double leak_decides_after(const struct leak_tally *tally, double confidence);

/* P(X >= k) for X binomial (n, 1/2). */
double leak_binomial_tail(uint64_t n, uint64_t k);
