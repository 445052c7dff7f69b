/* SPDX-License-Identifier: MIT */
#include "governor.h"

#include <math.h>

#define FADE_NS 2e9
#define AIM 0.75  /* of the limit, after a step up */
#define CALM 0.25 /* of the limit, before a step down */
#define STEPS_MAX 6

void governor_init(struct governor *g, double limit, uint64_t rate_bytes, const struct governor_reading *start)
{
	*g = (struct governor){
		.limit = limit,
		.least = rate_bytes,
		.rate = rate_bytes,
		.last = *start,
		.changed_ns = start->now_ns,
		.hold_ns = GOVERNOR_HOLD_NS,
	};
}

static void sum_up(struct governor *g, const struct governor_reading *look)
{
	double fade = exp(-(double)(look->now_ns - g->last.now_ns) / FADE_NS);

	g->cost_ns = g->cost_ns * fade + (double)(look->cost_ns - g->last.cost_ns);
	g->cpu_ns = g->cpu_ns * fade + (double)(look->cpu_ns - g->last.cpu_ns);
	g->last = *look;
}

static void change(struct governor *g, uint64_t rate)
{
	g->rate = rate;
	g->changed_ns = g->last.now_ns;
	g->calm_ns = 0;
	g->cost_ns = g->cpu_ns = 0;
}

static void raise_rate(struct governor *g)
{
	uint64_t now = g->last.now_ns, rate = g->rate;
	double overhead = g->overhead;

	for (int i = 0; i < STEPS_MAX && (overhead > AIM * g->limit) && rate <= GOVERNOR_RATE_MAX / 2; i++) {
		rate *= 2;
		overhead /= 2;
	}
	if (rate == g->rate)
		return;
	if (!g->lowered_ns || now - g->lowered_ns > 2 * g->hold_ns)
		g->hold_ns = GOVERNOR_HOLD_NS;
	else if (g->hold_ns < GOVERNOR_HOLD_MAX_NS)
		g->hold_ns *= 2;
	g->lowered_ns = 0;
	change(g, rate);
}

static void lower_rate(struct governor *g)
{
	uint64_t now = g->last.now_ns;

	if (!g->calm_ns) {
		g->calm_ns = now;
	} else if (now - g->calm_ns >= g->hold_ns) {
		g->lowered_ns = now;
		change(g, g->rate / 2 > g->least ? g->rate / 2 : g->least);
	}
}

static bool settled_at(const struct governor *g, uint64_t now_ns)
{
	return now_ns - g->changed_ns >= GOVERNOR_SETTLE_NS;
}

uint64_t governor_next_poll(const struct governor *g, uint64_t now_ns)
{
	return now_ns + (g->limit > 0 && !settled_at(g, now_ns) ? GOVERNOR_POLL_SOON_NS : GOVERNOR_POLL_NS);
}

uint64_t governor_decide(struct governor *g, const struct governor_reading *look, bool may_lower)
{
	bool may = may_lower && g->rate > g->least;

	/* Counters that others can write to need not rise. */
	if (look->now_ns <= g->last.now_ns || look->cost_ns < g->last.cost_ns || look->cpu_ns < g->last.cpu_ns) {
		g->last = *look;
		return g->rate;
	}
	sum_up(g, look);
	bool settled = settled_at(g, look->now_ns);
	if (!(g->limit > 0) || g->cpu_ns < (double)GOVERNOR_CPU_NS) {
		/* Nobody minds the cost, or the target is idle and it costs nothing. */
		if (may && settled)
			lower_rate(g);
		return g->rate;
	}
	g->overhead = g->cost_ns / g->cpu_ns;
	if (!settled && g->overhead < GOVERNOR_HURRY * g->limit)
		return g->rate;
	if (g->overhead > g->limit)
		raise_rate(g);
	else if (g->overhead >= CALM * g->limit)
		g->calm_ns = 0;
	else if (may)
		lower_rate(g);
	return g->rate;
}
