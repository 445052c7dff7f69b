/* SPDX-License-Identifier: MIT */
/* The table of live samples, see live_table.h. */
#include "tables/live_table.h"

#include "tables/filter.h"
#include "hook_call.h"
#include "tables/regions.h"

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

/* The bucket that a hash has in a level. */
struct place {
	const struct region *table;
	uint64_t number;
};

static inline struct place place_in(uint32_t level, uint64_t hash)
{
	const struct region *table = regions_item(REGIONS_LIVE, level);

	return (struct place){ .table = table, .number = region_bucket(table, hash) };
}

static inline uint64_t *place_tags(const struct place *at)
{
	return (uint64_t *)(void *)at->table->base + at->number;
}

static inline struct dump_live_record *place_records(const struct place *at)
{
	const struct region *table = at->table;

	return (struct dump_live_record *)(void *)(table->base + DUMP_LIVE_RECORDS_AT(table->entries)) +
	       at->number * DUMP_BUCKET;
}

void live_table_prefetch(uint64_t address)
{
	uint32_t level = regions_count(REGIONS_LIVE);
	uint64_t hash = address_hash(address);
	const uint8_t *records;
	struct place at;

	if (!level)
		return;
	at = place_in(--level, hash);
	__builtin_prefetch(place_tags(&at), 1);
	/* The first records, which are the most used as long as the table is not crowded. */
	records = (const uint8_t *)place_records(&at);
	for (uint32_t line = 0; line < 3; line++)
		__builtin_prefetch(records + line * LINE_BYTES, 1);
	while (level-- > 0) {
		at = place_in(level, hash);
		__builtin_prefetch(place_tags(&at));
	}
}

static bool key_change(uint64_t *key, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(key, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline uint64_t key_now(const struct dump_live_record *record)
{
	return __atomic_load_n(&record->address, __ATOMIC_RELAXED);
}

static inline void entry_set(struct live_entry *entry, uint64_t address, const struct place *at, uint32_t i)
{
	entry->address = address;
	entry->tag = (uint8_t *)place_tags(at) + i;
	entry->record = place_records(at) + i;
	__builtin_prefetch((const uint8_t *)(entry->record + 1) - 1, 1); /* it may end in the next line */
}

/* The highest bit of each byte that is the tag, and perhaps of some others: the keys decide. */
static inline uint64_t tags_like(uint64_t tags, uint8_t tag)
{
	uint64_t differ = tags ^ tag * EACH_BYTE;

	return (differ - EACH_BYTE) & ~differ & 0x80 * EACH_BYTE;
}

static inline uint32_t first_of(uint64_t bits)
{
	return (uint32_t)__builtin_ctzll(bits) / 8;
}

static inline bool find_in(const struct place *at, uint64_t tags, uint8_t tag, uint64_t address,
                           struct live_entry *entry)
{
	for (uint64_t like = tags_like(tags, tag); like; like &= like - 1)
		if (key_now(place_records(at) + first_of(like)) == address) {
			entry_set(entry, address, at, first_of(like));
			return true;
		}
	return false;
}

/* Keys of samples that were given up are free. */
static inline bool find_free_in(const struct place *at, uint64_t tags, uint64_t address, struct live_entry *entry)
{
	for (uint64_t none = tags_like(tags, 0); none; none &= none - 1)
		if (DUMP_KEY_IS_FREE(key_now(place_records(at) + first_of(none)))) {
			entry_set(entry, address, at, first_of(none));
			return true;
		}
	return false;
}

static inline uint64_t tags_now(const struct place *at)
{
	return __atomic_load_n(place_tags(at), __ATOMIC_RELAXED);
}

static bool find_address(uint64_t address, struct live_entry *entry)
{
	uint64_t hash = address_hash(address);
	uint8_t tag = tag_of(hash);

	for (uint32_t level = regions_count(REGIONS_LIVE); level-- > 0;) {
		struct place at = place_in(level, hash);

		if (find_in(&at, tags_now(&at), tag, address, entry))
			return true;
	}
	return false;
}

enum found { FOUND_NONE, FOUND_FREE, FOUND_ADDRESS };

/* Its record in any level, else the first free one from the youngest level on. */
static enum found find_either(uint64_t address, struct live_entry *entry)
{
	uint64_t hash = address_hash(address);
	uint8_t tag = tag_of(hash);
	bool free = false;

	for (uint32_t level = regions_count(REGIONS_LIVE); level-- > 0;) {
		struct place at = place_in(level, hash);
		uint64_t tags = tags_now(&at);

		if (find_in(&at, tags, tag, address, entry))
			return FOUND_ADDRESS;
		if (!free)
			free = find_free_in(&at, tags, address, entry);
	}
	return free ? FOUND_FREE : FOUND_NONE;
}

static void entry_tag(const struct live_entry *entry, uint8_t tag)
{
	__atomic_store_n(entry->tag, tag, __ATOMIC_RELAXED);
}

/* Makes its key busy, if it still is its address. */
static bool entry_take(const struct live_entry *entry)
{
	if (!key_change(&entry->record->address, entry->address, DUMP_KEY_BUSY))
		return false;
	entry_tag(entry, 0);
	return true;
}

/* Lets lookups find it. */
static void entry_tag_own(const struct live_entry *entry)
{
	entry_tag(entry, tag_of(address_hash(entry->address)));
}

static void entry_show(const struct live_entry *entry)
{
	entry_tag_own(entry);
	__atomic_store_n(&entry->record->address, entry->address, __ATOMIC_RELEASE);
}

enum live_reserved live_table_reserve(uint64_t address, struct live_entry *entry)
{
	for (;;) {
		enum found found = find_either(address, entry);
		uint64_t was;

		if (found == FOUND_NONE)
			return LIVE_FULL;
		if (found == FOUND_ADDRESS) {
			if (entry_take(entry))
				return LIVE_PRESENT;
			continue; /* changed under us */
		}
		was = key_now(entry->record);
		if (!DUMP_KEY_IS_FREE(was) || !key_change(&entry->record->address, was, DUMP_KEY_BUSY))
			continue;
		if (was & DUMP_KEY_GIVEN_UP)
			filter_remove(was & ~DUMP_KEY_GIVEN_UP);
		return LIVE_RESERVED;
	}
}

void live_table_publish(const struct live_entry *entry, const struct dump_live_record *record)
{
	const size_t key_bytes = sizeof(record->address);

	__builtin_memcpy((uint8_t *)entry->record + key_bytes, (const uint8_t *)record + key_bytes,
	                 sizeof(*record) - key_bytes);
	filter_add(entry->address);
	entry_show(entry);
}

/* The filter knew a sample that was given up until now. */
static void forget_given_up(uint64_t address)
{
	uint64_t hash = address_hash(address);

	for (uint32_t level = regions_count(REGIONS_LIVE); level-- > 0;) {
		struct place at = place_in(level, hash);
		struct dump_live_record *records = place_records(&at);

		for (uint32_t i = 0; i < DUMP_BUCKET; i++)
			if (key_now(&records[i]) == (address | DUMP_KEY_GIVEN_UP) &&
			    key_change(&records[i].address, address | DUMP_KEY_GIVEN_UP, DUMP_KEY_FREE)) {
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
	if (!found) {
		/* Keys first: memattach counts a thinning before it gives up the first record. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&payload.dump->thinnings, __ATOMIC_RELAXED))
			forget_given_up(address);
	}
	return found && entry_take(entry);
}

bool live_table_hide(uint64_t address, struct live_entry *entry)
{
	if (address <= DUMP_KEY_BUSY || !find_address(address, entry))
		return false;
	entry_tag(entry, 0);
	return true;
}

bool live_table_take_hidden(const struct live_entry *entry)
{
	if (entry_take(entry))
		return true;
	/* In memattach's hands, which gives it up or puts it back: then whoever gets the address next has to find it.
	 */
	if (!DUMP_KEY_IS_FREE(key_now(entry->record)))
		entry_tag_own(entry);
	return false;
}

void live_table_drop(const struct live_entry *entry)
{
	__atomic_store_n(&entry->record->address, DUMP_KEY_FREE, __ATOMIC_RELEASE);
	filter_remove(entry->address);
}

void live_table_put_back(const struct live_entry *entry)
{
	entry_show(entry);
}
