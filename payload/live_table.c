/* SPDX-License-Identifier: MIT */
/* The table of live samples, see live_table.h. */
#include "live_table.h"

#include "filter.h"
#include "hook_call.h"
#include "regions.h"

static uint64_t *table_keys(const struct region *table)
{
	return (uint64_t *)(void *)table->base;
}

static struct dump_live_record *table_record(const struct region *table, uint64_t i)
{
	return (struct dump_live_record *)(void *)(table->base + table->entries * sizeof(uint64_t)) + i;
}

static bool key_change(uint64_t *key, uint64_t from, uint64_t to)
{
	return __atomic_load_n(key, __ATOMIC_RELAXED) == from &&
	       __atomic_compare_exchange_n(key, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Makes the first key of address's buckets that holds `from` busy, from the oldest level on. */
static bool table_claim(uint64_t address, uint64_t from, struct live_entry *entry)
{
	uint64_t hash = (address >> 4) * HASH_MULTIPLIER;
	uint32_t levels = regions_count(&regions_live);

	for (uint32_t level = 0; level < levels; level++) {
		const struct region *table = &regions_live.items[level];
		uint64_t bucket = region_bucket(table, hash);
		uint64_t *keys = table_keys(table) + bucket;

		for (uint32_t i = 0; i < DUMP_BUCKET; i++) {
			if (!key_change(&keys[i], from, DUMP_KEY_BUSY))
				continue;
			entry->key = &keys[i];
			entry->record = table_record(table, bucket + i);
			return true;
		}
	}
	return false;
}

bool live_table_insert(const struct dump_live_record *record)
{
	struct live_entry entry;

	if (!table_claim(record->address, DUMP_KEY_FREE, &entry))
		return false;
	*entry.record = *record;
	filter_add(record->address);
	__atomic_store_n(entry.key, record->address, __ATOMIC_RELEASE);
	return true;
}

bool live_table_take(uint64_t address, struct live_entry *entry)
{
	if (address <= DUMP_KEY_BUSY || !filter_maybe(address))
		return false;
	return table_claim(address, address, entry);
}

void live_table_drop(const struct live_entry *entry)
{
	uint64_t address = entry->record->address;

	__atomic_store_n(entry->key, DUMP_KEY_FREE, __ATOMIC_RELEASE);
	filter_remove(address);
}

void live_table_put_back(const struct live_entry *entry)
{
	__atomic_store_n(entry->key, entry->record->address, __ATOMIC_RELEASE);
}
