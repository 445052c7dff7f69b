/* SPDX-License-Identifier: MIT */
/*
 * The table of sampled blocks that are live, in the dump's LIVE regions: lock-free, in levels, nothing is ever moved.
 *
 * A key goes free -> busy -> address (insert) and address -> busy -> free (remove), each first step by compare-and-swap; who has
 * made a key busy owns its record. Nobody waits for a busy key: an inserter takes another one, a remover cannot meet one that is
 * its own block's, since the program frees a block once, after it got it.
 */
#ifndef MEMATTACH_PAYLOAD_LIVE_TABLE_H
#define MEMATTACH_PAYLOAD_LIVE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "payload.h"

/* A record whose key is busy: in the hands of the caller. */
struct live_entry {
	uint64_t *key;
	struct dump_live_record *record;
};

/* What an insertion or removal of address will look at is wanted soon. */
void live_table_prefetch(uint64_t address, bool to_insert);
enum live_inserted { LIVE_INSERTED, LIVE_FULL, LIVE_PRESENT };
/*
 * Puts *record under its address and adds it to the filter. LIVE_FULL: no room in any level. LIVE_PRESENT: the address has a record,
 * which is now taken as by live_table_take(): the caller drops it and tries again.
 */
enum live_inserted live_table_insert(const struct dump_live_record *record, struct live_entry *present);
/* Takes the record of address out of the readers' sight. False: there is none. */
bool live_table_take(uint64_t address, struct live_entry *entry);
/* After live_table_take: for good, and out of the filter; or back as it was. */
void live_table_drop(const struct live_entry *entry);
void live_table_put_back(const struct live_entry *entry);

#endif
