/* SPDX-License-Identifier: MIT */
#include "input/recorded_session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct rate_reading {
	struct recorded_session *session;
	struct dump *dump;
};

static int on_rate(void *arg, const struct dump_rate_change *change)
{
	struct rate_reading *reading = arg;
	struct recorded_session *s = reading->session;

	if (!grow_list(s->rates, s->rate_count))
		return -ENOMEM;
	uint64_t at = dump_stamp_realtime_ns(reading->dump, change->stamp);
	s->rates[s->rate_count++] =
		(struct recorded_rate){ .seconds = at > s->start_ns ? (double)(at - s->start_ns) / 1e9 : 0,
		                        .old_bytes = change->old_bytes,
		                        .new_bytes = change->new_bytes,
		                        .reason = change->reason,
		                        .thinned_bytes = change->thinned_bytes,
		                        .overhead = change->overhead_ppm / 1e6 };
	for (int i = 0; i < 2; i++) {
		uint64_t rate = i ? change->new_bytes : change->old_bytes;
		s->largest_rate_bytes = rate > s->largest_rate_bytes ? rate : s->largest_rate_bytes;
		s->least_rate_bytes = rate < s->least_rate_bytes ? rate : s->least_rate_bytes;
	}
	return 0;
}

static int read_rates(struct recorded_session *s, struct dump *dump)
{
	const struct dump_header *h = dump_header(dump);
	struct rate_reading reading = { s, dump };

	s->first_rate_bytes = h->first_rate_bytes;
	s->least_rate_bytes = h->rate_bytes < h->first_rate_bytes ? h->rate_bytes : h->first_rate_bytes;
	s->largest_rate_bytes = h->rate_bytes > h->first_rate_bytes ? h->rate_bytes : h->first_rate_bytes;
	return dump_each_rate(dump, on_rate, &reading);
}

const char *recorded_session_rate_reason(uint32_t reason)
{
	static const char *const reasons[] = {
		[DUMP_RATE_COSTLY] = "costly", [DUMP_RATE_CHEAP] = "cheap", [DUMP_RATE_FULL] = "full"
	};

	return reason >= 1 && reason < sizeof reasons / sizeof reasons[0] ? reasons[reason] : "other";
}

/* Of dumps from before these were recorded both ends are 0, as where the kernel does not tell. */
static void read_resident(struct recorded_session *s, const struct dump_header *h)
{
	bool known = h->files_start_bytes && h->files_end_bytes;

	s->shared_growth = known ? (double)h->shared_end_bytes - (double)h->shared_start_bytes : NAN;
	s->files_growth = known ? (double)h->files_end_bytes - (double)h->files_start_bytes : NAN;
}

/* As a part of the CPU time; NAN unknown. */
static double mapping_overhead(const struct dump_header *h)
{
	const double stamps = (double)(h->clock_latest.stamp - h->clock_start.stamp);
	const double ns = (double)(h->clock_latest.monotonic_ns - h->clock_start.monotonic_ns);

	return h->cpu_ns && stamps > 0 ? fmin(1, (double)h->mapping_cycles * ns / stamps / (double)h->cpu_ns) : NAN;
}

int recorded_session_init(struct recorded_session *s, struct dump *dump, const char *name)
{
	const struct dump_header *h = dump_header(dump);

	int r = dump_find_latest(dump);
	*s = (struct recorded_session){
		.name = strdup(name),
		.pid = h->pid,
		.end_detail = h->end_detail,
		.state = h->state,
		.end = dump_end(dump),
		.id = h->session_id,
		.start_ns = h->clock_start.realtime_ns,
		.duration_ns = dump_duration_ns(dump),
		.no_end = dump_has_no_end(dump),
		.copied_ns = h->state == DUMP_STATE_RUNNING ? h->clock_latest.realtime_ns : 0,
		.is_copy = h->state == DUMP_STATE_RUNNING,
		.rest_missing = h->state == DUMP_STATE_RUNNING && dump_end(dump) == DUMP_END_ABANDONED,
		.rate_bytes = h->rate_bytes,
		.max_overhead = h->max_overhead_ppm / 1e6,
		.cpu_seconds = h->cpu_ns ? (double)h->cpu_ns / 1e9 : NAN,
		.overhead = h->cpu_ns ? (double)h->cost_ns / (double)h->cpu_ns : NAN,
		.processor = h->cpu_ns ? (double)h->cost_ns / fmax(1, (double)dump_duration_ns(dump)) : NAN,
		.mapping_overhead = mapping_overhead(h),
		.private_start_bytes = h->private_start_bytes,
		.private_latest_bytes = h->private_latest_bytes,
		.samples_mmap = h->session_flags & DUMP_SESSION_MMAP
	};
	read_resident(s, h);
	memcpy(s->command, h->command, sizeof s->command);
	memcpy(s->program, h->program, sizeof s->program);
	memcpy(s->host, h->host, sizeof s->host);
	memcpy(s->cgroup, h->cgroup, sizeof s->cgroup);
	s->cgroup[sizeof s->cgroup - 1] = '\0';
	memcpy(s->image, h->image, sizeof s->image - 1);
	for (int i = 0; i < DUMP_COUNTER_COUNT; i++)
		s->counters[i] = dump_counter(dump, i);
	s->frees_unseen = h->frees_unseen;
	s->frees_unseen_bytes = h->frees_unseen_bytes;
	r = r ?: s->name ? read_rates(s, dump) : -ENOMEM;
	r = r ?: memory_growth_read(&s->memory, dump);
	/* With a limit for the cost, or where blocks have no record, a free of one that has none says nothing. */
	s->frees_known = s->largest_rate_bytes == 1 && !h->max_overhead_ppm && !s->counters[DUMP_COUNTER_lost_busy] &&
	                 !s->counters[DUMP_COUNTER_lost_live_full];
	return r;
}

void recorded_session_finish(struct recorded_session *s, const struct dump *dump)
{
	for (int i = 0; i < DUMP_SKIP_COUNT; i++)
		s->skipped[i] = dump_skipped(dump, i);
	s->whole = dump_complete(dump);
}

void recorded_session_done(struct recorded_session *s)
{
	free(s->name);
	free(s->rates);
	s->rates = NULL;
	s->rate_count = 0;
	s->name = NULL;
}
