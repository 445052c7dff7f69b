/* SPDX-License-Identifier: MIT */
/* The table of live samples, see live_table.h. */
#include "live_table.h"

#include "filter.h"
#include "hook_call.h"
#include "regions.h"

#define LINE_BYTES 64u
#define EACH_BYTE 0x0101010101010101ull

static uint64_t address_hash(uint64_t address)
{
	return (address >> 4) * HASH_MULTIPLIER;
}

/* Of bits that do not choose the bucket. */
static uint8_t tag_of(uint64_t hash)
{
	uint8_t tag = (uint8_t)(hash >> 24);

	return tag ? tag : 1;
}

/* What a hash has in a level. */
struct place {
	uint64_t *tags; /* of the bucket */
	struct dump_live_bucket *bucket;
};

static inline struct place place_in(uint32_t level, uint64_t hash)
{
	const struct region *table = regions_item(REGIONS_LIVE, level);
	uint64_t number = region_bucket(table, hash);

	return (struct place){
		.tags = (uint64_t *)(void *)table->base + number,
		.bucket = (struct dump_live_bucket *)(void *)(table->base + DUMP_LIVE_BUCKETS_AT(table->entries)) + number,
	};
}

void live_table_prefetch(uint64_t address)
{
	uint32_t level = regions_count(REGIONS_LIVE);
	uint64_t hash = address_hash(address);
	const uint8_t *bucket;
	struct place at;

	if (!level)
		return;
	at = place_in(--level, hash);
	__builtin_prefetch(at.tags, 1);
	/* Keys, and the first records, which are the most used as long as the table is not crowded: lines are fetched in pairs. */
	bucket = (const uint8_t *)at.bucket;
	__builtin_prefetch(bucket, 1);
	__builtin_prefetch(bucket + LINE_BYTES, 1);
	__builtin_prefetch(bucket + 3 * LINE_BYTES, 1);
	while (level-- > 0)
		__builtin_prefetch(place_in(level, hash).tags);
}

static bool key_change(uint64_t *key, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(key, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void entry_set(struct live_entry *entry, const struct place *at, uint32_t i)
{
	entry->key = &at->bucket->keys[i];
	entry->tag = (uint8_t *)at->tags + i;
	entry->record = &at->bucket->records[i];
	__builtin_prefetch(entry->record, 1);
}

/* The highest bit of each byte that is the tag, and perhaps of some others: the keys decide. */
static inline uint64_t tags_like(const uint64_t *tags, uint8_t tag)
{
	uint64_t differ = __atomic_load_n(tags, __ATOMIC_RELAXED) ^ tag * EACH_BYTE;

	return (differ - EACH_BYTE) & ~differ & 0x80 * EACH_BYTE;
}

static inline uint32_t first_of(uint64_t bits)
{
	return (uint32_t)__builtin_ctzll(bits) / 8;
}

static bool find_address(uint64_t address, struct live_entry *entry)
{
	uint64_t hash = address_hash(address);
	uint8_t tag = tag_of(hash);

	for (uint32_t level = regions_count(REGIONS_LIVE); level-- > 0;) {
		struct place at = place_in(level, hash);

		for (uint64_t like = tags_like(at.tags, tag); like; like &= like - 1)
			if (__atomic_load_n(&at.bucket->keys[first_of(like)], __ATOMIC_RELAXED) == address) {
				entry_set(entry, &at, first_of(like));
				return true;
			}
	}
	return false;
}

/* From the youngest level on. Keys of samples that were given up are free. */
static bool find_free(uint64_t address, struct live_entry *entry)
{
	uint64_t hash = address_hash(address);

	for (uint32_t level = regions_count(REGIONS_LIVE); level-- > 0;) {
		struct place at = place_in(level, hash);

		for (uint64_t none = tags_like(at.tags, 0); none; none &= none - 1) {
			uint64_t key = __atomic_load_n(&at.bucket->keys[first_of(none)], __ATOMIC_RELAXED);

			if (DUMP_KEY_IS_FREE(key)) {
				entry_set(entry, &at, first_of(none));
				return true;
			}
		}
	}
	return false;
}

/* The key that entry stands for is address: makes it busy, if it still is that. */
static bool entry_take(const struct live_entry *entry, uint64_t address)
{
	if (!key_change(entry->key, address, DUMP_KEY_BUSY))
		return false;
	__atomic_store_n(entry->tag, 0, __ATOMIC_RELAXED);
	return true;
}

static void entry_show(const struct live_entry *entry, uint64_t address)
{
	__atomic_store_n(entry->tag, tag_of(address_hash(address)), __ATOMIC_RELAXED);
	__atomic_store_n(entry->key, address, __ATOMIC_RELEASE);
}

enum live_reserved live_table_reserve(uint64_t address, struct live_entry *entry)
{
	uint64_t was;

	for (;;) {
		if (find_address(address, entry)) {
			if (entry_take(entry, address))
				return LIVE_PRESENT;
			continue; /* changed under us */
		}
		if (!find_free(address, entry))
			return LIVE_FULL;
		was = __atomic_load_n(entry->key, __ATOMIC_RELAXED);
		if (!DUMP_KEY_IS_FREE(was) || !key_change(entry->key, was, DUMP_KEY_BUSY))
			continue;
		if (was & DUMP_KEY_GIVEN_UP)
			filter_remove(was & ~DUMP_KEY_GIVEN_UP);
		return LIVE_RESERVED;
	}
}

void live_table_publish(const struct live_entry *entry, const struct dump_live_record *record)
{
	*entry->record = *record;
	filter_add(record->address);
	entry_show(entry, record->address);
}

/* The filter knew a sample that was given up until now. */
static void forget_given_up(uint64_t address)
{
	uint64_t hash = address_hash(address);

	for (uint32_t level = regions_count(REGIONS_LIVE); level-- > 0;) {
		uint64_t *keys = place_in(level, hash).bucket->keys;

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
	bool found;

	if (address <= DUMP_KEY_BUSY || !filter_maybe(address))
		return false;
	found = find_address(address, entry);
	if (!found && __atomic_load_n(&payload.dump->thinnings, __ATOMIC_RELAXED))
		forget_given_up(address);
	return found && entry_take(entry, address);
}

void live_table_drop(const struct live_entry *entry)
{
	uint64_t address = entry->record->address;

	__atomic_store_n(entry->key, DUMP_KEY_FREE, __ATOMIC_RELEASE);
	filter_remove(address);
}

void live_table_put_back(const struct live_entry *entry)
{
	entry_show(entry, entry->record->address);
}
