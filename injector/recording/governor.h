/* SPDX-License-Identifier: MIT */
/*
 * The governor: which sampling rate keeps the cost of sampling below a share of the target's CPU time. It only decides;
 * who asks (rate_control.c) measures, tells the payload and records.
 *
 * The CPU time that counts is the target's, but at least a fifth of one processor's (DUMP_LOAD_MIN): a percent of
 * nothing would find nothing. Cost and CPU time are summed up, fading with a time constant of some seconds, and begin
 * anew with each change; a second sum fades more slowly and knows what has been overspent, which is saved again within
 * some ten seconds by a lower limit.
 *
 * Above the limit the rate is doubled, as often at once as it takes to come to three quarters of the limit (samples of
 * small blocks become half as many each time). Below a quarter of the limit for as long as `hold` it is halved again,
 * up to GOVERNOR_DOWN times at once, as often as the cost in this time stays below half of the limit, and never below
 * what the user asked for: a step down that was right is not taken back. Where one had to be taken back soon, the next
 * one waits twice as long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dump_format.h"

#define GOVERNOR_POLL_NS 250000000ull     /* how often it wants to be asked, */
#define GOVERNOR_POLL_SOON_NS 50000000ull /* at the start and after a change: it may have to hurry */
#define GOVERNOR_SETTLE_NS 1000000000ull  /* between two changes */
#define GOVERNOR_HURRY 8                  /* so many times the limit: at the next look already */
#define GOVERNOR_HOLD_NS 4000000000ull    /* calm before a step down, at first */
#define GOVERNOR_HOLD_MAX_NS 600000000000ull
#define GOVERNOR_SOON_NS 30000000000ull /* after a step down: a step up says that it was wrong */
#define GOVERNOR_DOWN 3                 /* halvings at once */
#define GOVERNOR_CPU_NS 20000000ull     /* less of it proves nothing */
#define GOVERNOR_RATE_MAX 0xffffffffull

/* Sums since the start of the session. */
struct governor_reading {
	uint64_t now_ns;
	uint64_t cost_ns; /* of sampling */
	uint64_t cpu_ns;  /* of the target */
};

struct governor_sum {
	double time_ns, cost_ns, cpu_ns;
};

struct governor {
	double limit;    /* part of the CPU time that counts; 0: none, the interval is never lengthened */
	uint64_t least;  /* never below: the user's rate, or what room there is */
	uint64_t rate;   /* in force */
	double overhead; /* of the CPU time that counts, as of the last look that had enough of it */
	struct governor_reading last;
	struct governor_sum look; /* since the look before */
	struct governor_sum now;  /* fading, since the last change */
	struct governor_sum past; /* fading, of all looks */
	struct governor_sum calm; /* since the cost is low */
	uint64_t changed_ns, lowered_ns, hold_ns;
};

void governor_init(struct governor *g, double limit, uint64_t rate_bytes, const struct governor_reading *start);
/* When it wants to be asked again. */
uint64_t governor_next_poll(const struct governor *g, uint64_t now_ns);
/* The rate that should be in force from now on; g->rate is set to it. may_lower: else it is only lengthened. */
uint64_t governor_decide(struct governor *g, const struct governor_reading *look, bool may_lower);
