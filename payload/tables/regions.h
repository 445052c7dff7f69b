/* SPDX-License-Identifier: MIT */
/*
 * The regions of the dump, as the hooks may use them. memattach publishes descriptors in the header; each is validated
 * once against the mapped size and copied into private memory, so that whatever happens to the file's bytes afterwards,
 * no hook computes an address outside of what was published. Invalid descriptors are passed over.
 */
#pragma once

#include <stdint.h>

#include "payload.h"

struct region {
	uint8_t *base;
	uint64_t bytes;
	uint64_t entries; /* hash tables and history */
	uint32_t shift;   /* hash tables: 63 - log2(number of buckets) */
	uint32_t reserved;
};

/* The kinds that hooks use. */
enum regions_kind { REGIONS_LIVE, REGIONS_STACK_INDEX, REGIONS_STACKS, REGIONS_HISTORY, REGIONS_KINDS };

/*
 * Those of each kind, oldest first. Entries below count are complete and do not change. The first ones of all kinds are
 * near each other: a sample at a large rate finds none of it in the caches.
 */
struct regions {
	uint32_t count[REGIONS_KINDS]; /* (atomic) released after the entries */
	struct region items[DUMP_REGION_MAX][REGIONS_KINDS];
};

extern struct regions regions HIDDEN;

/* Forgets all; nobody may use them. */
void regions_init(void);
/* Takes over what memattach has published meanwhile. Any thread, at any time. */
void regions_refresh(void);
static inline uint32_t regions_count(enum regions_kind kind)
{
	return __atomic_load_n(&regions.count[kind], __ATOMIC_ACQUIRE);
}

static inline const struct region *regions_item(enum regions_kind kind, uint32_t i)
{
	return &regions.items[i][kind];
}

/* Number of the bucket of a hash in a table. */
static inline uint64_t region_bucket(const struct region *table, uint64_t hash)
{
	return (hash >> 1) >> table->shift;
}
/* The stack record of a reference, or NULL if no arena holds it. */
struct dump_stack *regions_stack(uint32_t reference);
