/* SPDX-License-Identifier: MIT */
/*
 * What the figures of a report are worth. One place decides, from evidence that the reader of the dumps has collected:
 *
 *   measured     the estimate with its interval
 *   upper bound  frees are missed: what is counted as live may be free
 *   lower bound  allocations are missed
 *   unknown      nothing can be seen, or both: no direction is left
 *
 * Missed frees. A sampled block that counts as live while its address is given out to another sampled block has been
 * freed by a way that is not seen. Let blocks be given out at one address one after the other, and each free be missed
 * with the probability m. Sampled block i, of S bytes, and the next sampled block j at its address make a pair, unless
 * a free is seen between. Blocks are sampled independently, so the pair is there g blocks later with p_i p_j
 * (1-p)^(g-1) m^g, and a free that is seen ends the record of i after g more blocks with p_i (1-p)^g m^g (1-m): that
 * free may be one of a later block. Summed over g, with 1/(p_i p_j) and 1/p_i as the weights,
 *
 *   E sum of S/(p_i p_j) over pairs : E sum of S/p_i over seen frees = m : 1 - m
 *
 * whatever p and the number of reuses are. (Where a block is reused once at most, the first sum estimates the missed
 * frees by itself; where it is reused often it is more than these, and so is the second more than the seen ones.) The
 * share of missed frees is M / (M + F); of its interval either end takes those ends of both sums that are worst for it.
 * m differs from path to path, so stacks with TRUST_STRATUM_PAIRS pairs or more have a share of their own, the others
 * one together, and each counts by the bytes whose record has ended; those have an error of their own, the variance of
 * which is at most the interval times the bytes.
 *
 * It is blind for blocks whose address is not given out again, and tells little if the session is short.
 *
 * An upper bound is what has both a share of missed frees that matters (its lower end is above TRUST_SHARE_MIN, from
 * TRUST_PAIRS_MIN pairs: a library that frees by itself what the program has allocated misses a handful) and an effect
 * above what sampling leaves open anyway: the bytes of the missed frees, and the share of the live bytes, are above
 * half of the width of their interval. Decisions are made with ESTIMATE_CONFIDENCE, whatever is shown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stats/estimate.h"

#define TRUST_SHARE_MIN 0.01
#define TRUST_PAIRS_MIN 3
#define TRUST_STRATUM_PAIRS 5

/* A sum of bytes / p without what only a shown figure needs: there is one for each stack. */
struct free_sum {
	double value, variance;
	uint64_t samples;
};

/* How the records of sampled blocks have ended, of a stack or of many. */
struct free_tally {
	struct free_sum missed; /* pairs, with 1 / (p_i p_j) */
	double rarest;          /* largest 1 / p of a block of a pair; 0: all are certain to be seen */
	double replaced;        /* bytes / p_i of the pairs */
	struct free_sum seen;   /* frees that were seen */
	struct free_sum live;   /* records that have not ended */
};

void free_sum_add(struct free_sum *sum, double bytes, double p, double rest);
/* A block that was sampled with p, at whose address one was sampled later with later. */
void free_tally_add_pair(struct free_tally *tally, uint64_t size, double p, double later);
void free_tally_merge(struct free_tally *into, const struct free_tally *from);

/* The share of missed frees among those of blocks whose address was given out again, by bytes. */
struct trust_share {
	double value, low, high;
	double missed_low; /* bytes of the missed frees, at the lower end; of a total only */
	uint64_t pairs;    /* 0: no free is known to be missed; nothing else is set then */
};

/* Adds stacks up: starts as zero. */
struct trust_shares {
	struct free_tally rest;                      /* those with too few pairs for a share of their own */
	double missed, missed_low, missed_high, all; /* bytes, of the others */
	double squares;                              /* sum of share^2 x bytes */
	uint64_t pairs;
};
/* rate: the largest of the session, what an unseen sample weighs. */
void trust_shares_add(struct trust_shares *shares, const struct free_tally *tally, uint64_t rate);
struct trust_share trust_shares_total(const struct trust_shares *shares, uint64_t rate);
/* Of one tally. */
struct trust_share trust_share(const struct free_tally *tally, uint64_t rate);
/* Whether so many frees are missed that a stack's growth says nothing. */
bool trust_share_matters(const struct trust_share *share);

enum trust_value { TRUST_MEASURED, TRUST_UPPER_BOUND, TRUST_LOWER_BOUND, TRUST_UNKNOWN };

enum trust_reason {
	TRUST_FREES_MISSED,     /* addresses were given out again while their blocks counted as live */
	TRUST_MORE_THAN_MEMORY, /* the live blocks do not fit the private memory of the process */
	TRUST_ALLOCATOR_INSIDE, /* a module has an allocator of its own */
	TRUST_NOT_PATCHED,      /* calls of a module are not seen */
	TRUST_MEMORY_UNSEEN,    /* private memory grew without allocations that were seen */
	TRUST_NOTHING_HOOKED,   /* no call of an allocation function was found */
	TRUST_HOOKS_LOST,       /* the program has undone hooks: calls and frees after that are not seen */
	TRUST_REASON_COUNT
};

struct trust_evidence {
	struct trust_share share;
	double live, live_half;       /* estimate of the live bytes, half of the width of its interval */
	double fit_live, fit_private; /* of a session whose live blocks need more than there is: see TRUST_FIT_MAX */
	bool allocator_inside, not_patched, memory_unseen, nothing_hooked, hooks_lost;
	uint64_t samples;
};

/*
 * Of live blocks that have at most TRUST_FIT_MAX bytes, the first TRUST_PAGE bytes must be in memory: allocators write
 * to each page of those, or their owner does. Larger ones, and mappings, may be reserved and never touched. So the
 * lower end of this sum cannot be above the private memory, unless blocks are counted that are free.
 */
#define TRUST_FIT_MAX (64u << 10)
#define TRUST_PAGE 4096u

/* Live figures and allocated ones; numbers of blocks are worth what bytes are. */
struct trust_part {
	enum trust_value value;
	uint32_t reasons; /* bits, 1 << enum trust_reason */
};

struct trust {
	struct trust_part live, allocated;
	struct trust_share share;
	double fit_live, fit_private; /* of TRUST_MORE_THAN_MEMORY */
};

struct trust trust_decide(const struct trust_evidence *evidence);
/* Whether growth of live figures may be that of frees that are missed. */
bool trust_live_doubtful(const struct trust *trust);
/* "measured", "upper_bound" …, as in JSON. */
const char *trust_value_name(enum trust_value value);
const char *trust_reason_name(enum trust_reason reason);
