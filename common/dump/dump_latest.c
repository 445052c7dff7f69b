/* SPDX-License-Identifier: MIT */
/*
 * How long a session recorded.
 *
 * memattach writes the time into the header when it renews the lease, and when the session ends. If it was killed,
 * nobody has written the end: the recorder goes on until the lease runs out, and what it recorded meanwhile tells the
 * time by its stamps. The latest of them is a lower bound of the end. None can be later than the lease; one that is was
 * not written by the recorder.
 */
#include <string.h>

#include "dump/dump_internal.h"
#include "base/now.h"

#define RENEWALS_MISSED_NS 3000000000u /* memattach renews the lease once a second */

bool dump_has_no_end(const struct dump *dump)
{
	const struct dump_header *h = &dump->header;

	if (dump->end == DUMP_END_ABANDONED)
		return true;
	return dump->end == DUMP_END_RUNNING && h->lease_stamp &&
	       h->clock_latest.realtime_ns < now_ns(CLOCK_REALTIME) - RENEWALS_MISSED_NS;
}

static void look_at(struct dump *dump, uint64_t stamp)
{
	if (stamp > dump->latest_stamp && stamp <= dump->header.lease_stamp)
		dump->latest_stamp = stamp;
}

static int look_at_live(void *dump, const struct dump_live_record *record)
{
	look_at(dump, record->stamp);
	return 0;
}

static int look_at_history(void *dump, const struct dump_history_record *record)
{
	look_at(dump, record->allocated_stamp);
	look_at(dump, record->freed_stamp);
	return 0;
}

int dump_find_latest(struct dump *dump)
{
	uint64_t skipped[DUMP_SKIP_COUNT];

	if (!dump_has_no_end(dump))
		return 0;
	/* What cannot be read will be counted when it is read for the report. */
	memcpy(skipped, dump->skipped, sizeof skipped);
	int r = dump_each_live(dump, look_at_live, dump);
	r = r ?: dump_each_history(dump, look_at_history, dump);
	memcpy(dump->skipped, skipped, sizeof skipped);
	return r;
}

uint64_t dump_latest_stamp(const struct dump *dump)
{
	return dump->latest_stamp;
}

double dump_ns_per_stamp(const struct dump *dump)
{
	const struct dump_header *h = &dump->header;
	const struct dump_clock *a = &h->clock_start, *b = &h->clock_latest;

	if (b->stamp > a->stamp && b->monotonic_ns > a->monotonic_ns)
		return (double)(b->monotonic_ns - a->monotonic_ns) / (double)(b->stamp - a->stamp);
	if (h->lease_stamp > b->stamp && h->lease_realtime_ns > b->realtime_ns)
		return (double)(h->lease_realtime_ns - b->realtime_ns) / (double)(h->lease_stamp - b->stamp);
	return 0;
}

uint64_t dump_duration_ns(const struct dump *dump)
{
	const struct dump_clock *a = &dump->header.clock_start, *b = &dump->header.clock_latest;

	if (b->monotonic_ns < a->monotonic_ns)
		return 0;
	uint64_t known_ns = b->monotonic_ns - a->monotonic_ns;
	if (dump->latest_stamp <= b->stamp)
		return known_ns;
	double more_ns = (double)(dump->latest_stamp - b->stamp) * dump_ns_per_stamp(dump);
	/* The lease is the same instant on both clocks; the ratio of two times near each other is not exact. */
	uint64_t most_ns =
		dump->header.lease_realtime_ns > b->realtime_ns ? dump->header.lease_realtime_ns - b->realtime_ns : 0;
	return known_ns + (more_ns < (double)most_ns ? (uint64_t)more_ns : most_ns);
}
