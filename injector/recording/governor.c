/* SPDX-License-Identifier: MIT */
#include "recording/governor.h"

#include <math.h>

#define FADE_NS 2e9
#define FADE_PAST_NS 20e9
#define REPAY_NS 10e9 /* in which overspent time is to be saved */
#define LEAST 0.125   /* of the limit, while it is */
#define AIM 0.75      /* of the limit, after a step up */
#define HALF 0.5      /* of the limit, after a step down */
#define CALM 0.25     /* of the limit, before it */
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

static void add(struct governor_sum *sum, const struct governor_sum *more, double fade_ns)
{
	double fade = exp(-more->time_ns / fade_ns);

	sum->time_ns = sum->time_ns * fade + more->time_ns;
	sum->cost_ns = sum->cost_ns * fade + more->cost_ns;
	sum->cpu_ns = sum->cpu_ns * fade + more->cpu_ns;
}

static double counting_ns(const struct governor_sum *sum)
{
	return fmax(sum->cpu_ns, DUMP_LOAD_MIN * sum->time_ns);
}

static double share(const struct governor_sum *sum)
{
	return sum->time_ns > 0 ? sum->cost_ns / counting_ns(sum) : 0;
}

/* The limit, less what saves in REPAY_NS what was overspent. */
static double limit_now(const struct governor *g)
{
	double over = fmax(0, share(&g->past) - g->limit);

	return fmax(LEAST * g->limit, g->limit - over * g->past.time_ns / REPAY_NS);
}

static void sum_up(struct governor *g, const struct governor_reading *look)
{
	const struct governor_sum more = { .time_ns = (double)(look->now_ns - g->last.now_ns),
		                           .cost_ns = (double)(look->cost_ns - g->last.cost_ns),
		                           .cpu_ns = (double)(look->cpu_ns - g->last.cpu_ns) };

	add(&g->now, &more, FADE_NS);
	add(&g->past, &more, FADE_PAST_NS);
	add(&g->calm, &more, INFINITY);
	g->last = *look;
	g->look = more;
}

static void change(struct governor *g, uint64_t rate)
{
	g->rate = rate;
	g->changed_ns = g->last.now_ns;
	g->now = g->calm = (struct governor_sum){ 0 };
}

static void raise_rate(struct governor *g, double limit)
{
	uint64_t now = g->last.now_ns, rate = g->rate;
	/* What has begun just now is hidden among what was before. */
	double latest = counting_ns(&g->look) < (double)GOVERNOR_CPU_NS ? 0 : share(&g->look);
	double overhead = fmax(g->overhead, latest);

	for (int i = 0; i < STEPS_MAX && (overhead > AIM * limit) && rate <= GOVERNOR_RATE_MAX / 2; i++) {
		rate *= 2;
		overhead /= 2;
	}
	if (rate == g->rate)
		return;
	if (g->lowered_ns && (double)(now - g->lowered_ns) > fmax(GOVERNOR_SOON_NS, 2 * (double)g->hold_ns))
		g->hold_ns = GOVERNOR_HOLD_NS;
	else if (g->lowered_ns && g->hold_ns < GOVERNOR_HOLD_MAX_NS)
		g->hold_ns *= 2;
	g->lowered_ns = 0;
	change(g, rate);
}

static void lower_rate(struct governor *g, double limit)
{
	uint64_t rate = g->rate;
	double overhead = share(&g->calm);

	if (g->calm.time_ns < (double)g->hold_ns)
		return;
	for (int i = 0; i < GOVERNOR_DOWN && rate > g->least && (overhead *= 2) <= HALF * limit; i++)
		rate = rate / 2 > g->least ? rate / 2 : g->least;
	if (rate == g->rate)
		return;
	g->lowered_ns = g->last.now_ns;
	change(g, rate);
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
	if (counting_ns(&g->now) < (double)GOVERNOR_CPU_NS)
		return g->rate;
	double limit = g->limit > 0 ? limit_now(g) : INFINITY;
	g->overhead = share(&g->now);
	if (!settled && g->overhead < GOVERNOR_HURRY * g->limit)
		return g->rate;
	if (g->overhead > g->limit && g->limit > 0)
		raise_rate(g, limit);
	else if (g->overhead >= CALM * limit)
		g->calm = (struct governor_sum){ 0 };
	else if (may)
		lower_rate(g, limit);
	return g->rate;
}
