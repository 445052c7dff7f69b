/* SPDX-License-Identifier: MIT */
/* Times that are a period apart, counted from the first: what happens in between, and how long, moves none of them. */
#ifndef MEMATTACH_SCHEDULE_H
#define MEMATTACH_SCHEDULE_H

#include <stdint.h>

struct schedule {
	uint64_t first_ns, period_ns; /* period_ns > 0 */
	uint64_t number;              /* of the time that came last; the first one is 0 */
};

/* The first time after now, which becomes the last that came. *missed: how many have passed since the one before. */
uint64_t schedule_next(struct schedule *s, uint64_t now_ns, uint64_t *missed);

#endif
