/* SPDX-License-Identifier: MIT */
#include "input/reuse.h"

#include <stdlib.h>

#include "stats/estimate.h"
#include "base/grow.h"

static int later_index(struct reuse *r, uint64_t stamp, uint32_t *index)
{
	const uint32_t *known = map_find(&r->later_of, stamp);

	*index = known ? *known : (uint32_t)r->later_count;
	if (known)
		return 0;
	if (!grow_list(r->later, r->later_count) || map_put(&r->later_of, stamp, *index))
		return -ENOMEM;
	r->later[r->later_count++] = 0;
	return 0;
}

int reuse_add(struct reuse *r, uint64_t stamp, const struct reuse_pair *pair)
{
	uint32_t later;

	if (r->count == REUSE_PAIRS_MAX)
		return 1;
	if (later_index(r, stamp, &later) || !grow_list(r->pairs, r->count))
		return -ENOMEM;
	r->pairs[r->count] = *pair;
	r->pairs[r->count++].later = later;
	return 0;
}

struct finding {
	struct reuse *reuse;
	struct dump *dump;
};

static void found(struct reuse *r, uint64_t stamp, uint64_t size, uint32_t rate)
{
	const uint32_t *later = map_find(&r->later_of, stamp);

	if (later && rate)
		r->later[*later] = estimate_probability(size, rate);
}

static int on_live(void *arg, const struct dump_live_record *record)
{
	const struct finding *f = arg;

	found(f->reuse, record->stamp, DUMP_SAMPLED_BYTES(record, DUMP_LIVE_PART), dump_live_rate(f->dump, record));
	return 0;
}

static int on_history(void *arg, const struct dump_history_record *record)
{
	const struct finding *f = arg;

	found(f->reuse, record->allocated_stamp, DUMP_SAMPLED_BYTES(record, DUMP_HISTORY_PART),
	      dump_history_rate(f->dump, record));
	return 0;
}

int reuse_find(struct reuse *r, struct dump *dump)
{
	struct finding f = { r, dump };
	int s = r->count ? dump_each_live(dump, on_live, &f) : 0;

	return s || !r->count ? s : dump_each_history(dump, on_history, &f);
}

double reuse_later(const struct reuse *r, const struct reuse_pair *pair, const struct dump *dump)
{
	double p = r->later[pair->later];

	return p > 0 ? p : dump_header(dump)->thinnings ? 0 : pair->p;
}

void reuse_done(struct reuse *r)
{
	free(r->pairs);
	free(r->later);
	map_done(&r->later_of);
	*r = (struct reuse){ 0 };
}
