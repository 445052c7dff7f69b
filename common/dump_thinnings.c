/* SPDX-License-Identifier: MIT */
/* The thinnings that a dump records, and what they make of its records. */
#include <stdlib.h>
#include <string.h>

#include "dump_internal.h"

#define THINNINGS_MAX 65536u

static int on_change(void *arg, const struct dump_rate_change *change)
{
	struct dump *dump = arg;

	if (!change->thinned_bytes || dump->thinning_count == THINNINGS_MAX)
		return 0;
	struct thinning *more = reallocarray(dump->thinnings, dump->thinning_count + 1, sizeof *more);
	if (!more)
		return -ENOMEM;
	dump->thinnings = more;
	more[dump->thinning_count++] = (struct thinning){ change->stamp, change->thinned_bytes };
	return 0;
}

int dump_read_thinnings(struct dump *dump)
{
	uint64_t skipped[DUMP_SKIP_COUNT];

	/* Who reads the changes for themselves has counted, or will, what of them is damaged. */
	memcpy(skipped, dump->skipped, sizeof skipped);
	dump->thinning_count = 0;
	int r = dump_each_rate(dump, on_change, dump);
	memcpy(dump->skipped, skipped, sizeof skipped);
	return r;
}

int dump_thinned_meanwhile(struct dump *dump)
{
	uint32_t now;

	if (dump_read(dump, offsetof(struct dump_header, thinnings), &now, sizeof now) != sizeof now || now == dump->header.thinnings)
		return 0;
	dump->header.thinnings = now;
	int r = dump_read_thinnings(dump);
	return r ? r : 1;
}

int dump_take_thinnings(struct dump *earlier, const struct dump *later)
{
	if (!later->thinning_count)
		return 0;
	struct thinning *list = reallocarray(NULL, later->thinning_count, sizeof *list);
	if (!list)
		return -ENOMEM;
	memcpy(list, later->thinnings, later->thinning_count * sizeof *list);
	free(earlier->thinnings);
	earlier->thinnings = list;
	earlier->thinning_count = later->thinning_count;
	return 0;
}

uint32_t dump_live_rate(const struct dump *dump, const struct dump_live_record *record)
{
	const struct thinning_sample sample = thinning_of_live(record);

	return thinning_rate(dump->thinnings, dump->thinning_count, &sample, UINT64_MAX);
}

uint32_t dump_history_rate(const struct dump *dump, const struct dump_history_record *record)
{
	const struct thinning_sample sample = thinning_of_history(record);

	return thinning_rate(dump->thinnings, dump->thinning_count, &sample, record->freed_stamp);
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
