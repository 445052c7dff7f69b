/* SPDX-License-Identifier: MIT */
#include "input/parts/parts.h"

#include <stdlib.h>

#include "base/grow.h"

static bool is_aligned(uint16_t hook)
{
	return hook == HOOK_aligned_alloc || hook == HOOK_posix_memalign || hook == HOOK_memalign;
}

struct sample sample_of_live(const struct dump_live_record *record, uint32_t rate)
{
	return (struct sample){ .address = record->address,
		                .size = record->size,
		                .whole = DUMP_SAMPLED_BYTES(record, DUMP_LIVE_PART),
		                .usable = record->flags & DUMP_LIVE_PART ? 0 : record->usable,
		                .born = record->stamp,
		                .stack = record->stack,
		                .tid = record->tid,
		                .flags = record->flags,
		                .aligned = is_aligned(record->hook),
		                .mapping = sample_is_mapping(record->hook),
		                .rate = rate };
}

struct sample sample_of_history(const struct dump_history_record *record, uint32_t rate)
{
	return (struct sample){ .size = record->size,
		                .whole = DUMP_SAMPLED_BYTES(record, DUMP_HISTORY_PART),
		                .born = record->allocated_stamp,
		                .freed = record->freed_stamp ? record->freed_stamp : 1,
		                .stack = record->stack,
		                .tid = record->tid,
		                .aligned = is_aligned(record->hook),
		                .missed = record->flags & DUMP_HISTORY_FREE_MISSED,
		                .rate = rate };
}

/* What the sum has of the block, which becomes x more; of more sums than are known, all that it can have. */
static double have(const struct sample *s, const struct estimate_sum *sum, double x)
{
	struct part_sums *sums = s->sums;
	size_t i = 0;

	while (i < sums->count && sums->list[i].sum != sum)
		i++;
	if (i == PART_SUMS_MAX)
		return s->rest;
	if (i == sums->count) {
		sums->list[sums->count++].sum = sum;
		sums->list[i].x = 0;
	}
	sums->list[i].x += x;
	return sums->list[i].x - x;
}

void sample_add_bytes(struct estimate_sum *sum, const struct sample *s, double bytes, double p)
{
	if (s->sums)
		estimate_add_part(sum, bytes, p, have(s, sum, bytes));
	else
		estimate_add(sum, bytes, p);
}

void sample_add(struct estimate_sum pair[2], const struct sample *s, double p)
{
	const uint64_t samples = pair[0].samples;

	sample_add_bytes(&pair[0], s, (double)s->size, p);
	if (pair[0].samples != samples)
		estimate_add_block(&pair[1], p);
}

void sample_add_gone(struct estimate_sum pair[2], const struct sample *s, double p)
{
	if (sample_is_later(s))
		sample_add_bytes(&pair[0], s, (double)s->size, p);
	else
		sample_add(pair, s, p);
}

int parts_add(struct parts *p, const struct sample *sample)
{
	if (!grow_list(p->list, p->count))
		return -ENOMEM;
	p->list[p->count++] = *sample;
	return 0;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* No thread maps twice at one stamp of the cycle counter. */
static int compare_blocks(const struct sample *a, const struct sample *b)
{
	return compare(a->born, b->born) ?: compare(a->tid, b->tid) ?: compare(a->stack, b->stack);
}

/* The end of those that are live, whose freed is 0, is the largest number. */
static int compare_parts(const void *first, const void *second)
{
	const struct sample *a = first, *b = second;

	return compare_blocks(a, b) ?: compare(b->freed - 1, a->freed - 1) ?: compare(a->address, b->address);
}

static void join(struct sample *block, size_t count, struct part_sums *sums)
{
	double rest = 0, live = 0;

	for (size_t i = 0; i < count; i++) {
		block[i].sums = sums;
		block[i].rest = rest;
		rest += (double)block[i].size;
		if (!block[i].freed)
			live = rest;
	}
	block->live = live;
}

void parts_join(struct parts *p)
{
	size_t end;

	if (p->count)
		qsort(p->list, p->count, sizeof *p->list, compare_parts);
	for (size_t i = 0; i < p->count; i = end) {
		for (end = i + 1; end < p->count && !compare_blocks(&p->list[i], &p->list[end]); end++)
			;
		join(&p->list[i], end - i, &p->sums);
	}
}

const struct sample *parts_next(struct parts *p, size_t i)
{
	if (!sample_is_later(&p->list[i]))
		p->sums.count = 0;
	return &p->list[i];
}

void parts_done(struct parts *p)
{
	free(p->list);
	*p = (struct parts){ 0 };
}
