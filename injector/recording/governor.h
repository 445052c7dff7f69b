/* SPDX-License-Identifier: MIT */
/*
 * The governor: which sampling rate keeps the cost of sampling below a share of the target's CPU time. It only decides;
 * who asks (rate_control.c) measures, tells the payload and records.
 *
 * Cost and CPU time are summed up, fading with a time constant of FADE_NS, and begin anew with each change. Above the
 * limit the rate is doubled, as often at once as it takes to come to three quarters of the limit (samples of small
 * blocks become half as many each time). Below a quarter of the limit for as long as `hold` it is halved again, never
 * below what the user asked for: a step down leads to less than half of the limit, so one that was right is not taken
 * back. Where a step down had to be taken back soon, the next one waits twice as long.
 */
#ifndef MEMATTACH_GOVERNOR_H
#define MEMATTACH_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#define GOVERNOR_POLL_NS 250000000ull     /* how often it wants to be asked, */
#define GOVERNOR_POLL_SOON_NS 50000000ull /* at the start and after a change: it may have to hurry */
#define GOVERNOR_SETTLE_NS 1000000000ull  /* between two changes */
#define GOVERNOR_HURRY 8                  /* so many times the limit: at the next look already */
#define GOVERNOR_HOLD_NS 10000000000ull   /* calm before a step down, at first */
#define GOVERNOR_HOLD_MAX_NS 600000000000ull
#define GOVERNOR_CPU_NS 20000000ull /* less CPU time proves nothing */
#define GOVERNOR_RATE_MAX 0xffffffffull

/* Sums since the start of the session. */
struct governor_reading {
	uint64_t now_ns;
	uint64_t cost_ns; /* of sampling */
	uint64_t cpu_ns;  /* of the target */
};

struct governor {
	double limit;    /* part of the CPU time; 0: none, the interval is never lengthened */
	uint64_t least;  /* never below: the user's rate, or what room there is */
	uint64_t rate;   /* in force */
	double overhead; /* as of the last look that had enough CPU time */
	struct governor_reading last;
	double cost_ns, cpu_ns; /* fading */
	uint64_t changed_ns, calm_ns, lowered_ns, hold_ns;
};

void governor_init(struct governor *g, double limit, uint64_t rate_bytes, const struct governor_reading *start);
/* When it wants to be asked again. */
uint64_t governor_next_poll(const struct governor *g, uint64_t now_ns);
/* The rate that should be in force from now on; g->rate is set to it. may_lower: else it is only lengthened. */
uint64_t governor_decide(struct governor *g, const struct governor_reading *look, bool may_lower);

#endif
