/* SPDX-License-Identifier: MIT */
#include "recording/live_records.h"

#include <stdatomic.h>

bool live_table_next(const struct dump_writer *w, uint32_t *i, struct live_table *t)
{
	const struct dump_header *h = w->own;

	for (; *i < h->region_count; (*i)++) {
		const struct dump_region *r = &h->regions[*i];
		if (r->kind != DUMP_REGION_LIVE)
			continue;
		t->tags = (_Atomic uint8_t *)w->shared + r->offset;
		t->records =
			(struct dump_live_record *)((char *)w->shared + r->offset + DUMP_LIVE_RECORDS_AT(r->entries));
		t->entries = r->entries;
		(*i)++;
		return true;
	}
	return false;
}

bool live_table_read(const struct live_table *t, uint64_t k, struct dump_live_record *record)
{
	uint64_t key = atomic_load_explicit(live_table_key(t, k), memory_order_acquire);

	if (DUMP_KEY_IS_FREE(key) || key == DUMP_KEY_BUSY)
		return false;
	*record = t->records[k];
	record->address = key;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(live_table_key(t, k), memory_order_relaxed) == key;
}
