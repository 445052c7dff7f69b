/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <stdlib.h>
#include <string.h>

int session_init(struct session *s, struct dump *dump, const char *name)
{
	const struct dump_header *h = dump_header(dump);

	*s = (struct session){ .name = strdup(name),
			       .pid = h->pid,
			       .end_detail = h->end_detail,
			       .state = h->state,
			       .end = dump_end(dump),
			       .id = h->session_id,
			       .start_ns = h->clock_start.realtime_ns,
			       .duration_ns = dump_duration_ns(dump),
			       .rate_bytes = h->rate_bytes,
			       .private_start_bytes = h->private_start_bytes,
			       .private_latest_bytes = h->private_latest_bytes };
	memcpy(s->command, h->command, sizeof s->command);
	memcpy(s->program, h->program, sizeof s->program);
	memcpy(s->host, h->host, sizeof s->host);
	for (int i = 0; i < DUMP_COUNTER_COUNT; i++)
		s->counters[i] = dump_counter(dump, i);
	return s->name ? 0 : -ENOMEM;
}

void session_finish(struct session *s, const struct dump *dump)
{
	for (int i = 0; i < DUMP_SKIP_COUNT; i++)
		s->skipped[i] = dump_skipped(dump, i);
	s->whole = dump_complete(dump);
}

void session_done(struct session *s)
{
	free(s->name);
	s->name = NULL;
}
