/* SPDX-License-Identifier: MIT */
/*
 * When the blocks of each stack came and went, in steps of a timeline, so that a page can add up those of any part of
 * it. Samples of a stack that came in one step and went in one are a cell. Where there would be too many cells, a step
 * is two moments of the timeline, then four, and so on.
 *
 * A sample comes at the first moment at or after its birth, and goes at the first one at or after its free, as in
 * timeline.h. So what came until the end of a step and goes after it is what a report for that moment shows as live.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "stats/estimate.h"
#include "base/map.h"

#define SPANS_MAX (1u << 18) /* cells */
#define SPANS_MOMENTS_MAX 60000u
#define SPAN_LIVE 0u

struct span_cell {
	uint32_t stack; /* reference */
	uint32_t next;  /* of the same stack (index_list.h) */
	uint16_t born;  /* step */
	uint16_t freed; /* step + 1, one more for after the last moment; SPAN_LIVE */
	struct estimate_sum bytes, count;
};

struct spans {
	struct span_cell *cells;
	size_t count;
	size_t moments, step; /* of so many moments; step 0: there are none, also where there were too many cells */
	struct map cell_of, first_of;
};

/* A step is one moment. */
void spans_init(struct spans *spans, size_t moments);
/* A block that was sampled with the probability p. born, freed: numbers of moments, spans->moments where it was after
 * the last one; freed SIZE_MAX: it is live. rest: of a part. -ENOMEM. */
int spans_add(struct spans *spans, uint32_t stack, size_t born, size_t freed, uint64_t size, double p,
              double rest) WARN_UNUSED;
/* The list of a stack's cells. */
uint32_t spans_of(const struct spans *spans, uint32_t stack);
/* How many steps there are. */
size_t spans_steps(const struct spans *spans);
void spans_done(struct spans *spans);
