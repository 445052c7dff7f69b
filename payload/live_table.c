/* SPDX-License-Identifier: MIT */
/* The table of live samples, see live_table.h. */
#include "live_table.h"

#include "filter.h"
#include "hook_call.h"
#include "regions.h"

#define MARKS_LOG2 15 /* 4 KiB: one for each bucket of the youngest level, as memattach begins where everything is recorded */
#define LINE_BYTES 64u

/* (atomic) One for each prefix of the hash: a record was put into an older level. */
static uint64_t marks[(1u << MARKS_LOG2) / 64];
static uint32_t marked_levels; /* for which the marks hold: with a younger one all others hold records */

void live_table_init(void)
{
	for (uint32_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		__atomic_store_n(&marks[i], 0, __ATOMIC_RELAXED);
	marked_levels = regions_count(REGIONS_LIVE);
}

static uint64_t address_hash(uint64_t address)
{
	return (address >> 4) * HASH_MULTIPLIER;
}

static uint64_t *mark_word(uint64_t hash, uint64_t *bit)
{
	uint64_t mark = hash >> (64 - MARKS_LOG2);

	*bit = 1ull << mark % 64;
	return &marks[mark / 64];
}

static bool is_marked(uint64_t hash)
{
	uint64_t bit;

	return __atomic_load_n(mark_word(hash, &bit), __ATOMIC_RELAXED) & bit;
}

/* Before a record in an older level can be seen. */
static void mark(uint64_t hash)
{
	uint64_t bit, *word = mark_word(hash, &bit);

	__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

/* How many levels, from the youngest on, may hold a record of that hash. */
static inline uint32_t levels_to_look_at(uint32_t levels, uint64_t hash)
{
	return levels == marked_levels && levels && !is_marked(hash) ? 1 : levels;
}

static inline struct dump_live_bucket *bucket_of(uint32_t level, uint64_t hash)
{
	const struct region *table = regions_item(REGIONS_LIVE, level);

	return (struct dump_live_bucket *)(void *)table->base + region_bucket(table, hash);
}

void live_table_prefetch(uint64_t address)
{
	uint32_t levels = regions_count(REGIONS_LIVE);
	const uint8_t *bucket;

	if (!levels)
		return;
	bucket = (const uint8_t *)bucket_of(levels - 1, address_hash(address));
	/* Keys, and the first records, which are the most used as long as the table is not crowded: lines are fetched in pairs. */
	__builtin_prefetch(bucket, 1);
	__builtin_prefetch(bucket + LINE_BYTES, 1);
	__builtin_prefetch(bucket + 3 * LINE_BYTES, 1);
}

static bool key_change(uint64_t *key, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(key, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void entry_set(struct live_entry *entry, struct dump_live_bucket *bucket, uint32_t i)
{
	entry->key = &bucket->keys[i];
	entry->record = &bucket->records[i];
	__builtin_prefetch(entry->record, 1);
}

/* Which of a bucket's keys is the address, DUMP_BUCKET: none. Without branches, since it is any of them. */
static inline uint32_t bucket_find(const struct dump_live_bucket *bucket, uint64_t address)
{
	uint32_t found = 1u << DUMP_BUCKET;

#pragma GCC unroll 8
	for (uint32_t i = 0; i < DUMP_BUCKET; i++)
		found |= (uint32_t)(__atomic_load_n(&bucket->keys[i], __ATOMIC_RELAXED) == address) << i;
	return (uint32_t)__builtin_ctz(found);
}

/* The first that is free, DUMP_BUCKET: none. */
static inline uint32_t bucket_find_free(const struct dump_live_bucket *bucket)
{
	uint32_t found = 1u << DUMP_BUCKET;

#pragma GCC unroll 8
	for (uint32_t i = 0; i < DUMP_BUCKET; i++)
		found |= (uint32_t)((int64_t)__atomic_load_n(&bucket->keys[i], __ATOMIC_RELAXED) <= 0) << i; /* DUMP_KEY_IS_FREE() */
	return (uint32_t)__builtin_ctz(found);
}

static bool find_address(uint64_t address, struct live_entry *entry)
{
	uint32_t levels = regions_count(REGIONS_LIVE);
	uint64_t hash = address_hash(address);

	for (uint32_t n = levels_to_look_at(levels, hash); n > 0; n--) {
		struct dump_live_bucket *bucket = bucket_of(--levels, hash);
		uint32_t i = bucket_find(bucket, address);

		if (i < DUMP_BUCKET) {
			entry_set(entry, bucket, i);
			return true;
		}
	}
	return false;
}

/* From the youngest level on. Keys of samples that were given up are free. */
static bool find_free(uint64_t address, struct live_entry *entry)
{
	uint32_t levels = regions_count(REGIONS_LIVE);
	uint64_t hash = address_hash(address);

	for (uint32_t level = levels; level-- > 0;) {
		struct dump_live_bucket *bucket = bucket_of(level, hash);
		uint32_t i = bucket_find_free(bucket);

		if (i < DUMP_BUCKET) {
			if (level + 1 < levels)
				mark(hash);
			entry_set(entry, bucket, i);
			return true;
		}
	}
	return false;
}

enum live_reserved live_table_reserve(uint64_t address, struct live_entry *entry)
{
	uint64_t was;

	for (;;) {
		if (find_address(address, entry)) {
			if (key_change(entry->key, address, DUMP_KEY_BUSY))
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
	__atomic_store_n(entry->key, record->address, __ATOMIC_RELEASE);
}

/* The filter knew a sample that was given up until now. */
static void forget_given_up(uint64_t address)
{
	uint64_t hash = address_hash(address);

	for (uint32_t level = regions_count(REGIONS_LIVE); level-- > 0;) {
		uint64_t *keys = bucket_of(level, hash)->keys;

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
	return found && key_change(entry->key, address, DUMP_KEY_BUSY);
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
