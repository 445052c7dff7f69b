/* SPDX-License-Identifier: MIT */
#include "system/cpu_budget.h"

#include <stdlib.h>

#include "dump_format.h"

#define SECOND_NS 1e9
#define ROOM_TO_GROW 2.0 /* a session may come to take so many times what it takes now, before the next division */
#define LEAST_PPM 10u

static double counts_ns(const struct cpu_use *u)
{
	double least = SECOND_NS * DUMP_LOAD_MIN;

	return u->cpu_ns > least ? u->cpu_ns : least;
}

/* What it may want until the next division. */
static double wanted_ns(const struct cpu_use *u, double part)
{
	double most = part * counts_ns(u), soon = ROOM_TO_GROW * u->cost_ns;

	return soon < most ? soon : most;
}

static void set(struct cpu_use *u, double ns, double part)
{
	double limit = ns / counts_ns(u);
	uint32_t ppm = (uint32_t)((limit < part ? limit : part) * 1e6 + 0.5);

	u->limit_ppm = ppm > LEAST_PPM ? ppm : LEAST_PPM;
}

static int by_growth(const void *a, const void *b)
{
	const struct cpu_use *const *x = a, *const *y = b;

	return ((*x)->growth < (*y)->growth) - ((*x)->growth > (*y)->growth);
}

static void divide(struct cpu_use **order, size_t count, double part, double budget_ns)
{
	double even = budget_ns / 2 / (double)count, left = budget_ns / 2;

	qsort(order, count, sizeof *order, by_growth);
	for (size_t i = 0; i < count; i++) {
		double wanted = wanted_ns(order[i], part), more = wanted > even ? wanted - even : 0;
		more = more < left ? more : left;
		left -= more;
		set(order[i], even + more, part);
	}
}

void cpu_budget_divide(struct cpu_use *uses, size_t count, double part, unsigned processors)
{
	double budget_ns = part * processors * SECOND_NS, wanted = 0;
	struct cpu_use **order = count ? calloc(count, sizeof(struct cpu_use *)) : NULL;

	for (size_t i = 0; i < count; i++)
		wanted += wanted_ns(&uses[i], part);
	for (size_t i = 0; i < count; i++) {
		set(&uses[i], part * counts_ns(&uses[i]), part);
		if (order)
			order[i] = &uses[i];
	}
	/* Without memory for the order all get the same. */
	for (size_t i = 0; wanted > budget_ns && !order && i < count; i++)
		set(&uses[i], budget_ns / (double)count, part);
	if (wanted > budget_ns && order)
		divide(order, count, part, budget_ns);
	free(order);
}
