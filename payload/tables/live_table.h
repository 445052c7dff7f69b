/* SPDX-License-Identifier: MIT */
/*
 * The table of sampled blocks that are live, in the dump's LIVE regions: lock-free, in levels, nothing is ever moved.
 *
 * A key goes free -> busy -> address (insert) and address -> busy -> free (remove), each first step by
 * compare-and-swap; who has made a key busy owns its record. Nobody waits for a busy key: an inserter takes another
 * one, a remover cannot meet one that is its own block's, since the program frees a block once, after it got it.
 *
 * The youngest level is the largest, and a record that finds room there is there. What a look into a level costs is
 * not the comparison but the page: where every allocation is recorded, translations of addresses are the largest part
 * of the cost of this table. So each record has a tag, a byte of its hash (0: none): the tags of a bucket are one word,
 * those of all levels are few pages, and a record is looked at only if its tag fits. The key is the record's first
 * word, so it is in the same line as what is wanted next.
 *
 * A free has to find the record before the original runs, for afterwards another thread may record a block at the
 * address. A compare-and-swap there would wait for the record's line. It is enough to clear the tag, a store that
 * nobody waits for: an inserter that gets the address then finds no record of it and takes another place, and the
 * record stays with the thread that frees. Two records of one address may exist for that moment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "payload.h"

/* A record whose key is busy: in the hands of the caller. */
struct live_entry {
	struct dump_live_record *record;
	uint8_t *tag;
	uint64_t address;
};

/* What an insertion or removal of address will look at is wanted soon. */
void live_table_prefetch(uint64_t address);
enum live_reserved { LIVE_RESERVED, LIVE_FULL, LIVE_PRESENT };
/*
 * A place for the record of address: the caller fills it by live_table_publish(). LIVE_FULL: no room in any level.
 * LIVE_PRESENT: the address has a record, which is now taken as by live_table_take(): the caller drops it and tries
 * again.
 */
enum live_reserved live_table_reserve(uint64_t address, struct live_entry *entry);
/* Puts *record into the place that was reserved for its address, and adds that to the filter. */
void live_table_publish(const struct live_entry *entry, const struct dump_live_record *record);
/* Takes the record of address out of the readers' sight. False: there is none. */
bool live_table_take(uint64_t address, struct live_entry *entry);
/* Lets nobody else find the record of address, whose block this thread is about to free. False: there is none. */
bool live_table_hide(uint64_t address, struct live_entry *entry);
/* When the block is freed: as live_table_take() for the record that was hidden. False: memattach has given it up. */
bool live_table_take_hidden(const struct live_entry *entry);
/* After live_table_take: for good, and out of the filter; or back as it was. */
void live_table_drop(const struct live_entry *entry);
void live_table_put_back(const struct live_entry *entry);
