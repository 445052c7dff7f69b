/* SPDX-License-Identifier: MIT */
#include "host/schedule.h"

uint64_t schedule_next(struct schedule *s, uint64_t now_ns, uint64_t *missed)
{
	uint64_t since_ns = now_ns > s->first_ns ? now_ns - s->first_ns : 0;
	uint64_t next = since_ns / s->period_ns + 1;

	/* A wait may end a moment early. */
	if (next <= s->number)
		next = s->number + 1;
	*missed = next - s->number - 1;
	s->number = next;
	return s->first_ns + next * s->period_ns;
}
