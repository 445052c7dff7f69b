/* SPDX-License-Identifier: MIT */
/*
 * One limit of the CPU time that sampling may take on the whole machine, divided among the sessions.
 *
 * Each session's governor (governor.h) holds a part of its process's CPU time, or of a fifth of one processor's if that
 * is more. With the same part for all, busy processes stay below that part of the machine by themselves; many that are
 * nearly idle may not, since each may take its part of a fifth. So where all together come near the budget it is
 * divided: one half evenly, the other half to those whose memory grows, the fastest first. Who takes less than its
 * share leaves the rest to the others.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of a session, per second, since the last division. */
struct cpu_use {
	double cost_ns;     /* of sampling */
	double cpu_ns;      /* of its process */
	double growth;      /* bytes of private memory */
	uint32_t limit_ppm; /* result: of the CPU time that counts */
};

/* part: of each processor, of so many. Sets all limit_ppm, never to 0. */
void cpu_budget_divide(struct cpu_use *uses, size_t count, double part, unsigned processors);
