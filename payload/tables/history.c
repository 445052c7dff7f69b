/* SPDX-License-Identifier: MIT */
/*
 * The history ring.
 *
 * A thread owns a block until it is full, then takes the next one of the ring; header.history_next numbers them. When
 * the ring has gone round while a thread still fills an old block, the block has a new sequence, and the thread takes
 * another. The check and the store that follows are not one step: a thread that is stopped up exactly there may write
 * one record into a block that has just become another's. Both are complete records of this session, so a reader sees
 * at worst one of them twice.
 */
#include "tables/history.h"

#include "tables/regions.h"

/*
 * Where all is recorded the ring is out of the caches when it comes round, and the next locked instruction would wait
 * for the store into each of its lines. So the line of a record to come is asked for with each, perhaps after the
 * block: a prefetch cannot fault.
 */
#define AHEAD_BYTES (4 * sizeof(struct dump_history_record))

static struct dump_history_block *block_at(uint32_t page)
{
	return (struct dump_history_block *)(void *)((uint8_t *)payload.dump +
	                                             (uint64_t)page * DUMP_HISTORY_BLOCK_BYTES);
}

void history_prefetch(const struct thread_state *thread)
{
	if (thread->history_page)
		__builtin_prefetch(block_at(thread->history_page), 1);
}

/* Physical block number k of all the history regions together. */
static struct dump_history_block *block_number(uint64_t k)
{
	uint32_t count = regions_count(REGIONS_HISTORY);
	uint64_t total = 0;

	for (uint32_t i = 0; i < count; i++)
		total += regions_item(REGIONS_HISTORY, i)->entries;
	if (!total)
		return 0;
	k %= total;
	for (uint32_t i = 0; i < count; i++) {
		const struct region *region = regions_item(REGIONS_HISTORY, i);

		if (k < region->entries)
			return (struct dump_history_block *)(void *)region->base + k;
		k -= region->entries;
	}
	return 0;
}

/* The block that the thread state's thread fills, with room for a record: as before, or a new one. */
static struct dump_history_block *block_current(struct thread_state *thread, const struct counter_row *counters)
{
	struct dump_history_block *block;
	uint64_t k;
	uint32_t dropped;

	if (thread->history_page) {
		block = block_at(thread->history_page);
		if ((uint32_t)__atomic_load_n(&block->sequence, __ATOMIC_RELAXED) == thread->history_sequence &&
		    __atomic_load_n(&block->used, __ATOMIC_RELAXED) < DUMP_HISTORY_RECORDS)
			return block;
		thread->history_page = 0;
	}
	if (!regions_count(REGIONS_HISTORY))
		return 0;
	k = __atomic_fetch_add(&payload.dump->history_next, 1, __ATOMIC_RELAXED);
	block = block_number(k);
	if (!block)
		return 0;
	dropped = __atomic_exchange_n(&block->used, 0, __ATOMIC_ACQ_REL);
	if (__atomic_load_n(&block->sequence, __ATOMIC_RELAXED) && dropped)
		counter_add(counters, DUMP_COUNTER_lost_history, dropped);
	__atomic_store_n(&block->sequence, k + 1, __ATOMIC_RELEASE);
	/* Before the records that follow: who finds one of these finds that number. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	thread->history_page =
		(uint32_t)((uint64_t)((uint8_t *)block - (uint8_t *)payload.dump) / DUMP_HISTORY_BLOCK_BYTES);
	thread->history_sequence = (uint32_t)(k + 1);
	return block;
}

void history_append(struct thread_state *thread, const struct counter_row *counters,
                    const struct dump_live_record *record, uint64_t stamp, uint16_t flags)
{
	struct dump_history_block *block = thread ? block_current(thread, counters) : 0;
	const uint32_t part = (record->flags & DUMP_LIVE_PART) / (DUMP_LIVE_PART / DUMP_HISTORY_PART);
	uint32_t used;

	if (!block) {
		counter_add(counters, DUMP_COUNTER_lost_history, 1);
		return;
	}
	used = __atomic_load_n(&block->used, __ATOMIC_RELAXED);
	if (used >= DUMP_HISTORY_RECORDS)
		return;
	__builtin_prefetch((const uint8_t *)&block->records[used] + AHEAD_BYTES, 1);
	block->records[used] = (struct dump_history_record){
		.size = record->size,
		.usable = record->usable,
		.allocated_stamp = record->stamp,
		.freed_stamp = stamp,
		.stack = record->stack,
		.rate_bytes = record->rate_bytes,
		.tid = record->tid,
		.hook = record->hook,
		.flags = (uint16_t)(flags | part),
	};
	__atomic_store_n(&block->used, used + 1, __ATOMIC_RELEASE);
}
