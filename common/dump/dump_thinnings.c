/* SPDX-License-Identifier: MIT */
/* The thinnings that a dump records, and what they make of its records. */
#include <stdlib.h>
#include <string.h>

#include "dump/dump_internal.h"
#include "base/grow.h"

struct reading {
	struct thinning *list;
	size_t count;
};

static int on_change(void *arg, const struct dump_rate_change *change)
{
	struct reading *reading = arg;

	if (!change->thinned_bytes)
		return 0;
	if (!grow_list(reading->list, reading->count))
		return -ENOMEM;
	reading->list[reading->count++] = (struct thinning){ change->stamp, change->thinned_bytes };
	return 0;
}

int dump_read_thinnings(struct dump *dump)
{
	uint64_t skipped[DUMP_SKIP_COUNT];
	struct reading reading = { 0 };

	/* Who reads the changes for themselves has counted, or will, what of them is damaged. */
	memcpy(skipped, dump->skipped, sizeof skipped);
	int r = dump_each_rate(dump, on_change, &reading);
	memcpy(dump->skipped, skipped, sizeof skipped);
	if (r) {
		free(reading.list);
		return r;
	}
	thinning_index_done(&dump->thinnings);
	return thinning_index_make(&dump->thinnings, reading.list, reading.count);
}

int dump_thinned_meanwhile(struct dump *dump)
{
	uint32_t now;

	if (dump_read(dump, offsetof(struct dump_header, thinnings), &now, sizeof now) != sizeof now ||
	    now == dump->header.thinnings)
		return 0;
	dump->header.thinnings = now;
	int r = dump_read_thinnings(dump);
	return r ?: 1;
}

int dump_take_thinnings(struct dump *earlier, const struct dump *later)
{
	size_t count = later->thinnings.count;

	if (!count)
		return 0;
	struct thinning *list = reallocarray(NULL, count, sizeof *list);
	if (!list)
		return -ENOMEM;
	memcpy(list, later->thinnings.list, count * sizeof *list);
	thinning_index_done(&earlier->thinnings);
	return thinning_index_make(&earlier->thinnings, list, count);
}

uint32_t dump_live_rate(const struct dump *dump, const struct dump_live_record *record)
{
	const struct thinning_sample sample = thinning_of_live(record);

	return thinning_index_rate(&dump->thinnings, &sample, UINT64_MAX);
}

uint32_t dump_history_rate(const struct dump *dump, const struct dump_history_record *record)
{
	const struct thinning_sample sample = thinning_of_history(record);

	return thinning_index_rate(&dump->thinnings, &sample, record->freed_stamp);
}

double dump_live_survival(const struct dump_live_record *record)
{
	const struct thinning_sample sample = thinning_of_live(record);

	return thinning_survival(&sample);
}

double dump_history_survival(const struct dump_history_record *record)
{
	const struct thinning_sample sample = thinning_of_history(record);

	return thinning_survival(&sample);
}
