/* SPDX-License-Identifier: MIT */
/*
 * What a session costs a process that forks: each fork copies the session's mappings too, and each child gives them
 * back. No sampling interval makes that cheaper, so a process for which it is more than its part gets no session.
 *
 * The kernel tells of forks and of children that borrow the memory of their parent (vfork, posix_spawn), which cost
 * nothing here. They are told apart by the parent's page faults: after a fork each page that it writes to is a fault.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FORK_BUDGET_LOOKS 2u /* in a row that find too many forks: a start may have many */

/* Of one process; zero at first. */
struct fork_count {
	uint64_t forks;          /* since the last look, of both kinds */
	uint64_t at_ns;          /* of the last look; 0: none */
	uint64_t faults, cpu_ns; /* of the process until then (CPU time with its children's); 0: not read */
	unsigned over;           /* looks in a row that found too many, up to FORK_BUDGET_LOOKS */
};

/* part: of its CPU time, or of a fifth of a processor's if that is more (governor.h); 0: no limit. */
void fork_budget_look(struct fork_count *c, pid_t pid, double part, uint64_t now_ns);
bool fork_budget_exceeded(const struct fork_count *c);
