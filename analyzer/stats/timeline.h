/* SPDX-License-Identifier: MIT */
/*
 * What was live at each of some moments, and what was allocated between them. A sample counts from the first moment at
 * or after its birth on, until the last one before its free: what enters and what leaves is noted at those two, and
 * added up in the end, so a sample costs the same however long it lives. The sum at a moment is over the same samples
 * as that of a report for that moment, and so is its interval.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "stats/estimate.h"

struct timeline_point {
	uint64_t ns;    /* after the attach; */
	uint64_t stamp; /* the same */
	struct estimate_sum live;
	struct estimate_sum allocated; /* since the moment before */
	bool incomplete;               /* what was freed since may be missing */
	struct estimate_sum gone;      /* private: what was live at the moment before and is no more */
};

struct timeline {
	struct timeline_point *points; /* by time */
	size_t count;                  /* 0: there is none */
};

/* count moments, at equal distances: the last one is duration_ns or the whole millisecond after it. The stamps are the
 * caller's. -ENOMEM. */
int timeline_init(struct timeline *timeline, size_t count, uint64_t duration_ns) WARN_UNUSED;
/* Nothing was added, as after timeline_init. */
void timeline_clear(struct timeline *timeline);
/* The number of the first moment at or after the stamp; count: there is none. */
size_t timeline_find(const struct timeline *timeline, uint64_t stamp);
/* A block that was sampled with the probability p; freed 0: it is live. rest: of a part. */
void timeline_add(struct timeline *timeline, uint64_t size, double p, uint64_t born, uint64_t freed, double rest);
/* Adds up. rate: the largest; whole_since: stamp before which frees may be missing, 0: none are. */
void timeline_finish(struct timeline *timeline, uint64_t rate, uint64_t whole_since);
/* The moment at which most was live, the first one of equals. There must be one. */
const struct timeline_point *timeline_peak(const struct timeline *timeline);
void timeline_done(struct timeline *timeline);
