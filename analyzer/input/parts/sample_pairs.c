/* SPDX-License-Identifier: MIT */
#include "input/parts/sample_pairs.h"

/* In the map a block has 1 if it is in the later state, too; a mapping then has the bytes of it behind that. */
#define BYTES_LOW 1u
#define BYTES_HIGH 2u

static uint64_t key_of(uint64_t address, uint64_t stamp)
{
	return map_mix(address ^ map_mix(stamp));
}

static uint64_t key_of_mapping(uint32_t stack, uint32_t tid, uint64_t stamp)
{
	return key_of(~((uint64_t)stack << 32 | tid), stamp);
}

static int on_key(void *arg, const struct dump_live_record *record)
{
	return map_put(arg,
	               sample_is_mapping(record->hook) ? key_of_mapping(record->stack, record->tid, record->stamp)
	                                               : key_of(record->address, record->stamp),
	               0);
}

int sample_pairs_keys(struct dump *dump, struct map *kept)
{
	return dump_each_live(dump, on_key, kept);
}

static int put_bytes(struct map *kept, uint64_t key, uint64_t bytes)
{
	int r = map_put(kept, key, 1);

	r = r ?: map_put(kept, key + BYTES_LOW, (uint32_t)bytes);
	return r ?: map_put(kept, key + BYTES_HIGH, (uint32_t)(bytes >> 32));
}

static double bytes_of(const struct map *kept, uint64_t key)
{
	const uint32_t *low = map_find(kept, key + BYTES_LOW), *high = map_find(kept, key + BYTES_HIGH);

	return low && high ? (double)((uint64_t)*high << 32 | *low) : 0;
}

/* A mapping has not gone as long as something of it is there, and nothing of it comes anew. */
static int add_kept(struct map *kept, uint64_t key, bool later, struct estimate_sum pair[2], const struct sample *s,
                    double p)
{
	if (sample_is_later(s))
		return 0; /* the first part is told with the bytes of all */
	if (later)
		return s->sums ? put_bytes(kept, key, (uint64_t)s->live) : map_put(kept, key, 1);
	if (s->sums && s->live > bytes_of(kept, key))
		estimate_add(&pair[0], s->live - bytes_of(kept, key), p);
	return 0;
}

int sample_pairs_add(struct map *kept, bool later, struct estimate_sum pair[2], const struct sample *s, double p)
{
	const uint64_t key = s->sums ? key_of_mapping(s->stack, s->tid, s->born) : key_of(s->address, s->born);
	const uint32_t *known = map_find(kept, key);

	if (known && (later || *known))
		return add_kept(kept, key, later, pair, s, p);
	sample_add(pair, s, p);
	return 0;
}
