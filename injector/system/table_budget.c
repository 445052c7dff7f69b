/* SPDX-License-Identifier: MIT */
#include "system/table_budget.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/cpu_budget.h"

static double per_second(uint64_t now, uint64_t before, double seconds)
{
	return ((double)now - (double)before) / seconds;
}

/* What a session has used since the last time. */
static struct cpu_use use_of(struct seen_process *p, uint64_t now_ns)
{
	double seconds = now_ns > p->last.at_ns ? (double)(now_ns - p->last.at_ns) / 1e9 : 1;
	uint64_t cost_ns = p->share->cost_ns, cpu_ns = p->share->cpu_ns, bytes = p->share->private_bytes;
	const struct cpu_use use = { .cost_ns = per_second(cost_ns, p->last.cost_ns, seconds),
		                     .cpu_ns = per_second(cpu_ns, p->last.cpu_ns, seconds),
		                     .growth = per_second(bytes, p->last.private_bytes, seconds) };

	p->last.at_ns = now_ns;
	p->last.cost_ns = cost_ns;
	p->last.cpu_ns = cpu_ns;
	p->last.private_bytes = bytes;
	return use;
}

void table_budget_divide(struct process_table *t, double part, uint64_t now_ns)
{
	AUTO_FREE struct cpu_use *uses = calloc(t->count + 1, sizeof *uses);
	AUTO_FREE struct session_share **shares = calloc(t->count + 1, sizeof(struct session_share *));
	size_t count = 0;

	if (!uses || !shares || !(part > 0))
		return;
	for (size_t i = 0; i < t->count; i++) {
		struct seen_process *p = &t->list[i];
		if (!p->share || !p->attached)
			continue;
		shares[count] = p->share;
		uses[count++] = use_of(p, now_ns);
	}
	cpu_budget_divide(uses, count, part, (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
	for (size_t i = 0; i < count; i++)
		shares[i]->limit_ppm = uses[i].limit_ppm;
}
