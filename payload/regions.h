/* SPDX-License-Identifier: MIT */
/*
 * The regions of the dump, as the hooks may use them. memattach publishes descriptors in the header; each is validated once against
 * the mapped size and copied into private memory, so that whatever happens to the file's bytes afterwards, no hook
 * computes an address outside of what was published. Invalid descriptors are passed over.
 */
#ifndef MEMATTACH_PAYLOAD_REGIONS_H
#define MEMATTACH_PAYLOAD_REGIONS_H

#include <stdint.h>

#include "payload.h"

struct region {
	uint8_t *base;
	uint64_t bytes;
	uint64_t entries; /* hash tables and history */
	uint32_t shift;   /* hash tables: 63 - log2(number of buckets) */
	uint32_t reserved;
};

/* Those of one kind, oldest first. Entries below count are complete and do not change. */
struct region_list {
	uint32_t count; /* (atomic) released after the entries */
	uint32_t reserved;
	struct region items[DUMP_REGION_MAX];
};

extern struct region_list regions_live HIDDEN;
extern struct region_list regions_stack_index HIDDEN;
extern struct region_list regions_stacks HIDDEN;
extern struct region_list regions_history HIDDEN;

/* Forgets all; nobody may use them. */
void regions_init(void);
/* Takes over what memattach has published meanwhile. Any thread, at any time. */
void regions_refresh(void);
static inline uint32_t regions_count(const struct region_list *list)
{
	return __atomic_load_n(&list->count, __ATOMIC_ACQUIRE);
}

/* Where the bucket of a hash starts in a table, in entries. */
static inline uint64_t region_bucket(const struct region *table, uint64_t hash)
{
	return ((hash >> 1) >> table->shift) * DUMP_BUCKET;
}
/* The stack record of a reference, or NULL if no arena holds it. */
struct dump_stack *regions_stack(uint32_t reference);

#endif
