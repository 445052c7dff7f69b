/* SPDX-License-Identifier: MIT */
#include "recording/live/live_records.h"

#include <stdatomic.h>

/* The next level of the table. */
static bool next_table(struct live_walk *x)
{
	const struct dump_writer *w = x->writer;

	while (x->region < w->own->region_count) {
		const struct dump_region *r = &w->own->regions[x->region++];
		char *at = (char *)w->shared + r->offset;
		if (r->kind != DUMP_REGION_LIVE)
			continue;
		x->table.tags = (_Atomic uint8_t *)at;
		x->table.records = (struct dump_live_record *)(at + DUMP_LIVE_RECORDS_AT(r->entries));
		x->table.entries = r->entries;
		x->next = 0;
		return true;
	}
	return false;
}

/* A copy of record k, if it is complete. */
static bool read_record(const struct live_table *t, uint64_t k, struct dump_live_record *record)
{
	uint64_t key = atomic_load_explicit(live_table_key(t, k), memory_order_acquire);

	if (DUMP_KEY_IS_FREE(key) || key == DUMP_KEY_BUSY)
		return false;
	*record = t->records[k];
	record->address = key;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(live_table_key(t, k), memory_order_relaxed) == key;
}

bool live_walk_next(struct live_walk *x)
{
	do
		while (x->next < x->table.entries) {
			x->k = x->next++;
			if (read_record(&x->table, x->k, &x->record))
				return true;
		}
	while (next_table(x));
	return false;
}
