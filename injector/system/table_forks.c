/* SPDX-License-Identifier: MIT */
#include "system/table_forks.h"

#include <signal.h>
#include <stdio.h>

#define WHILE_NS 60000000000ull
#define DOUBLED_MOST 6u
#define WHY "it forks so often that a session would cost it more than --max-overhead"

void table_forks_count(struct process_table *t, pid_t pid)
{
	struct seen_process *p = process_table_find(t, pid);

	if (p)
		p->forks.forks++;
}

static bool is_judged(const struct seen_process *p)
{
	return p->state == PROCESS_WAITING || p->state == PROCESS_IN_SESSION ||
	       (p->state == PROCESS_REFUSED && p->forking);
}

void table_forks_judge(struct process_table *t, double part, uint64_t now_ns,
                       void (*left)(void *context, const struct seen_process *p), void *context)
{
	for (size_t i = 0; i < t->count; i++) {
		struct seen_process *p = &t->list[i];
		if (!is_judged(p))
			continue;
		fork_budget_look(&p->forks, p->is.pid, part, now_ns);
		if (!fork_budget_exceeded(&p->forks))
			continue;
		if (!p->session) {
			table_forks_leave(p, now_ns);
			left(context, p);
		} else if (p->attached && !p->told) {
			p->told = p->forking = true;
			p->lost++;
			kill(p->session, SIGTERM);
		}
	}
}

void table_forks_leave(struct seen_process *p, uint64_t now_ns)
{
	const unsigned again = p->lost > 1 ? p->lost - 1 : 0;

	snprintf(p->why, sizeof p->why, "%s", WHY);
	p->state = PROCESS_REFUSED;
	p->forking = true;
	p->next_try_ns = now_ns + (WHILE_NS << (again < DOUBLED_MOST ? again : DOUBLED_MOST));
}
