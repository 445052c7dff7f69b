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

static uint64_t address_hash(uint64_t address)
{
	return (address >> 4) * HASH_MULTIPLIER;
}

void live_table_prefetch(uint64_t address, bool to_insert)
{
	uint32_t level = regions_count(&regions_live);
	uint64_t hash = address_hash(address), bucket;
	const struct region *table;

	if (!level)
		return;
	table = &regions_live.items[--level];
	bucket = region_bucket(table, hash);
	__builtin_prefetch(table_keys(table) + bucket, 1);
	/* Where it is as long as the table is not crowded: lines are fetched in pairs. */
	__builtin_prefetch(table_record(table, bucket), 1);
	__builtin_prefetch(table_record(table, bucket + 2), 1);
	while (to_insert && level-- > 0) {
		table = &regions_live.items[level];
		__builtin_prefetch(table_keys(table) + region_bucket(table, hash));
	}
}

static bool key_change(uint64_t *key, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(key, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Which of a bucket's keys is the address, DUMP_BUCKET: none. */
static inline uint32_t bucket_find(const uint64_t *keys, uint64_t address)
{
#pragma GCC unroll 8
	for (uint32_t i = 0; i < DUMP_BUCKET; i++)
		if (__atomic_load_n(&keys[i], __ATOMIC_RELAXED) == address)
			return i;
	return DUMP_BUCKET;
}

static inline uint32_t bucket_find_free(const uint64_t *keys)
{
	for (uint32_t i = 0; i < DUMP_BUCKET; i++) {
		uint64_t key = __atomic_load_n(&keys[i], __ATOMIC_RELAXED);

		if (DUMP_KEY_IS_FREE(key))
			return i;
	}
	return DUMP_BUCKET;
}

/*
 * The key of address, or else the first free one, or else NULL; *entry is where it stands. From the youngest level on, which is
 * the largest: there is room, so most records are found at the first look. Keys of samples that were given up are free.
 */
static inline uint64_t *table_find(uint64_t address, bool want_free, struct live_entry *entry)
{
	uint64_t hash = address_hash(address);
	uint64_t *free_key = 0;

	for (uint32_t level = regions_count(&regions_live); level-- > 0;) {
		const struct region *table = &regions_live.items[level];
		uint64_t bucket = region_bucket(table, hash);
		uint64_t *keys = table_keys(table) + bucket;
		uint32_t i = bucket_find(keys, address);
		bool found = i < DUMP_BUCKET;

		if (!found && want_free && !free_key)
			i = bucket_find_free(keys);
		if (i == DUMP_BUCKET)
			continue;
		entry->key = &keys[i];
		entry->record = table_record(table, bucket + i);
		__builtin_prefetch(entry->record, 1);
		if (found)
			return entry->key;
		free_key = entry->key;
	}
	return free_key;
}

enum live_inserted live_table_insert(const struct dump_live_record *record, struct live_entry *entry)
{
	uint64_t address = record->address, *key, was;

	while ((key = table_find(address, true, entry))) {
		was = __atomic_load_n(key, __ATOMIC_RELAXED);
		if ((was != address && !DUMP_KEY_IS_FREE(was)) || !key_change(key, was, DUMP_KEY_BUSY))
			continue; /* changed under us: another one, or none */
		if (was == address)
			return LIVE_PRESENT;
		if (was & DUMP_KEY_GIVEN_UP)
			filter_remove(was & ~DUMP_KEY_GIVEN_UP);
		*entry->record = *record;
		filter_add(address);
		__atomic_store_n(key, address, __ATOMIC_RELEASE);
		return LIVE_INSERTED;
	}
	return LIVE_FULL;
}

/* The filter knew a sample that was given up until now. */
static void forget_given_up(uint64_t address)
{
	uint64_t hash = address_hash(address);

	for (uint32_t level = regions_count(&regions_live); level-- > 0;) {
		const struct region *table = &regions_live.items[level];
		uint64_t *keys = table_keys(table) + region_bucket(table, hash);

		for (uint32_t i = 0; i < DUMP_BUCKET; i++)
			if (__atomic_load_n(&keys[i], __ATOMIC_RELAXED) == (address | DUMP_KEY_GIVEN_UP) &&
			    key_change(&keys[i], address | DUMP_KEY_GIVEN_UP, DUMP_KEY_FREE)) {
				filter_remove(address);
				return;
			}
	}
}

bool live_table_take(uint64_t address, struct live_entry *entry)
{
	uint64_t *key;

	if (address <= DUMP_KEY_BUSY || !filter_maybe(address))
		return false;
	key = table_find(address, false, entry);
	if (!key && __atomic_load_n(&payload.dump->thinnings, __ATOMIC_RELAXED))
		forget_given_up(address);
	return key && key_change(key, address, DUMP_KEY_BUSY);
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
