/* SPDX-License-Identifier: MIT */
#include "system/fork_budget.h"

#include "dump_format.h"
#include "process/proc_stat.h"

#define COST_NS 37e3 /* CPU time of a fork and of the child's end: docs/continuous.md, "A whole machine" */
#define FAULTS 3u    /* of a parent after a fork, at least: stack, its program's data, libc's; 4 were measured */
#define FIELD_FAULTS 10u

static double per_look(uint64_t now, uint64_t before)
{
	return before && now > before ? (double)(now - before) : 0;
}

static bool too_many(struct fork_count *c, pid_t pid, double part, double forks, double least_ns)
{
	uint64_t faults_before = c->faults, cpu_before_ns = c->cpu_ns;

	if (proc_stat_number(pid, FIELD_FAULTS, &c->faults, ERR_IGNORED) < 0)
		return false;
	c->cpu_ns = proc_stat_cpu_ns(pid);
	double most = per_look(c->faults, faults_before) / FAULTS;
	double allowed_ns = part * per_look(c->cpu_ns, cpu_before_ns);
	return COST_NS * (forks < most ? forks : most) > (allowed_ns > least_ns ? allowed_ns : least_ns);
}

void fork_budget_look(struct fork_count *c, pid_t pid, double part, uint64_t now_ns)
{
	double least_ns = part * DUMP_LOAD_MIN * per_look(now_ns, c->at_ns), forks = (double)c->forks;
	bool over = false;

	c->forks = 0;
	c->at_ns = now_ns;
	if (least_ns > 0 && COST_NS * forks > least_ns)
		over = too_many(c, pid, part, forks, least_ns);
	else
		c->faults = c->cpu_ns = 0; /* as of nearly all: nothing has to be read */
	c->over = !over ? 0 : c->over < FORK_BUDGET_LOOKS ? c->over + 1 : c->over;
}

bool fork_budget_exceeded(const struct fork_count *c)
{
	return c->over >= FORK_BUDGET_LOOKS;
}
