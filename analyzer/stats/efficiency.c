/* SPDX-License-Identifier: MIT */
#include "efficiency.h"

#include <math.h>

#define GROUP_SAMPLES 30
#define CLASSES_PER_DOUBLING 4

void efficiency_add(struct efficiency *e, uint64_t size, double p, bool live)
{
	double z = size ? (double)size : 1;
	struct efficiency_class *c = &e->classes[(size_t)(CLASSES_PER_DOUBLING * log2(z))];

	c->samples++;
	c->allocated += 1 / p;
	c->allocated_bytes += z / p;
	if (!live)
		return;
	c->live_samples++;
	c->live += 1 / p;
	c->live_square += z * z / p;
	c->variance += z * z * (1 - p) / (p * p);
}

/* k Z sqrt(l / a) without k, for each class. */
struct shape {
	const struct efficiency *e;
	double p[EFFICIENCY_CLASSES];
};

static double mean_size(const struct efficiency_class *c)
{
	return c->allocated_bytes / c->allocated;
}

static double samples_at(const struct shape *s, double k)
{
	double sum = 0;

	for (size_t i = 0; i < EFFICIENCY_CLASSES; i++)
		sum += s->e->classes[i].allocated * fmin(1, k * s->p[i]);
	return sum;
}

static double variance_at(const struct shape *s, double k)
{
	double sum = 0;

	for (size_t i = 0; i < EFFICIENCY_CLASSES; i++)
		if (s->e->classes[i].live > 0)
			sum += s->e->classes[i].live_square * (1 / fmin(1, k * s->p[i]) - 1);
	return sum;
}

/* The k at which a function that rises (sign 1) or falls (sign -1) with k passes the goal. */
static double find_k(const struct shape *s, double (*of)(const struct shape *, double), int sign, double goal)
{
	double low = -80;
	double high = 80;

	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;
		if (sign * (of(s, exp(middle)) - goal) < 0)
			low = middle;
		else
			high = middle;
	}
	return exp(high);
}

/* Groups neighbours until they have enough samples; what is left at the end joins the last group. */
static void make_groups(const struct efficiency *e, struct efficiency_result *r, size_t first[EFFICIENCY_CLASSES + 1])
{
	uint64_t samples = 0;

	r->group_count = 0;
	for (size_t i = 0; i < EFFICIENCY_CLASSES; i++) {
		if (!samples)
			first[r->group_count] = i;
		samples += e->classes[i].samples;
		if (samples >= GROUP_SAMPLES) {
			r->group_count++;
			samples = 0;
		}
	}
	if (!r->group_count) {
		first[0] = 0;
		r->group_count = 1;
	}
	first[r->group_count] = EFFICIENCY_CLASSES;
}

static void fill_group(const struct efficiency *e, struct efficiency_group *g, size_t from, size_t to,
                       struct shape *shape)
{
	uint64_t samples = 0;
	uint64_t live = 0;
	size_t last = from;
	bool any = false;

	*g = (struct efficiency_group){ 0 };
	for (size_t i = from; i < to; i++) {
		const struct efficiency_class *c = &e->classes[i];
		if (!c->samples)
			continue;
		if (!any)
			g->least = exp2((double)i / CLASSES_PER_DOUBLING);
		any = true;
		last = i;
		samples += c->samples;
		live += c->live_samples;
		g->allocated += c->allocated;
		g->live += c->live;
	}
	g->most = exp2((double)(last + 1) / CLASSES_PER_DOUBLING);
	g->survival = ((double)live + 1) / ((double)samples + 2);
	for (size_t i = from; i < to; i++)
		shape->p[i] = e->classes[i].samples ? mean_size(&e->classes[i]) * sqrt(g->survival) : 0;
	g->now = g->allocated > 0 ? (double)samples / g->allocated : 0;
}

bool efficiency_solve(const struct efficiency *e, double scale, struct efficiency_result *r)
{
	size_t first[EFFICIENCY_CLASSES + 1];
	struct shape shape = { .e = e };
	double samples = 0;
	double variance = 0;

	*r = (struct efficiency_result){ 0 };
	for (size_t i = 0; i < EFFICIENCY_CLASSES; i++) {
		samples += (double)e->classes[i].samples;
		variance += e->classes[i].variance;
	}
	if (!(variance > 0))
		return false;
	make_groups(e, r, first);
	for (size_t i = 0; i < r->group_count; i++)
		fill_group(e, &r->groups[i], first[i], first[i + 1], &shape);

	double k = find_k(&shape, samples_at, 1, samples);
	double best = fmin(variance_at(&shape, k), variance);
	double same = find_k(&shape, variance_at, -1, variance);
	r->samples = samples * scale;
	r->error_now = sqrt(variance);
	r->error_best = sqrt(best);
	r->ratio = best / variance;
	r->samples_best = fmin(samples_at(&shape, same), samples) * scale;
	for (size_t i = 0; i < r->group_count; i++) {
		struct efficiency_group *g = &r->groups[i];
		for (size_t c = first[i]; c < first[i + 1]; c++)
			g->best += e->classes[c].allocated * fmin(1, k * shape.p[c]);
		g->best = g->allocated > 0 ? g->best / g->allocated : 0;
		g->allocated *= scale;
		/* Freed blocks whose records are gone died, too. */
		g->survival /= scale;
	}
	return true;
}
