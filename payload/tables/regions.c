/* SPDX-License-Identifier: MIT */
/* Validated private copies of the dump's region descriptors, see regions.h. */
#include "tables/regions.h"

#include <stdbool.h>

struct regions regions;

static uint32_t regions_seen; /* (atomic) descriptors looked at */
static uint32_t regions_busy; /* (atomic) somebody is looking */

void regions_init(void)
{
	for (uint32_t kind = 0; kind < REGIONS_KINDS; kind++)
		regions.count[kind] = 0;
	regions_seen = 0;
	regions_busy = 0;
}

static enum regions_kind kind_of(uint32_t published)
{
	switch (published) {
	case DUMP_REGION_LIVE: return REGIONS_LIVE;
	case DUMP_REGION_STACK_INDEX: return REGIONS_STACK_INDEX;
	case DUMP_REGION_STACKS: return REGIONS_STACKS;
	case DUMP_REGION_HISTORY: return REGIONS_HISTORY;
	default: return REGIONS_KINDS;
	}
}

/* Bytes of each entry, 0: the region has none. */
static uint64_t region_entry_bytes(uint32_t kind)
{
	switch (kind) {
	case DUMP_REGION_LIVE: return DUMP_LIVE_ENTRY_BYTES;
	case DUMP_REGION_STACK_INDEX: return DUMP_INDEX_ENTRY_BYTES;
	case DUMP_REGION_HISTORY: return sizeof(struct dump_history_block);
	default: return 0;
	}
}

static bool region_valid(const struct dump_region *d, uint64_t mapped)
{
	uint64_t entry_bytes = region_entry_bytes(d->kind);

	if (d->offset < DUMP_HEADER_BYTES || d->offset % DUMP_REGION_ALIGN || d->bytes % DUMP_REGION_ALIGN)
		return false;
	if (!d->bytes || d->offset > mapped || d->bytes > mapped - d->offset)
		return false;
	if (!entry_bytes)
		return true;
	if (!d->entries || d->entries > d->bytes / entry_bytes)
		return false;
	if (d->kind == DUMP_REGION_HISTORY)
		return true;
	return d->entries >= DUMP_BUCKET && !(d->entries & (d->entries - 1));
}

static void region_take(const struct dump_region *published)
{
	struct dump_region d = *published; /* one read: the file may change under us */
	enum regions_kind kind;
	struct region *r;
	uint32_t *count;

	__asm__ volatile("" : : : "memory");
	kind = kind_of(d.kind);
	if (kind == REGIONS_KINDS || !region_valid(&d, payload.dump_bytes))
		return;
	count = &regions.count[kind];
	if (*count >= DUMP_REGION_MAX)
		return;
	r = &regions.items[*count][kind];
	r->base = (uint8_t *)payload.dump + d.offset;
	r->bytes = d.bytes;
	r->entries = d.entries;
	r->shift = d.entries >= DUMP_BUCKET ? (uint32_t)__builtin_clzll(d.entries / DUMP_BUCKET) : 63;
	__atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
}

void regions_refresh(void)
{
	/* pairs with memattach's release of region_count */
	uint32_t published = __atomic_load_n(&payload.dump->region_count, __ATOMIC_ACQUIRE);
	uint32_t seen = __atomic_load_n(&regions_seen, __ATOMIC_RELAXED);

	if (published > DUMP_REGION_MAX)
		published = DUMP_REGION_MAX;
	if (published <= seen || __atomic_exchange_n(&regions_busy, 1, __ATOMIC_ACQUIRE))
		return;
	for (seen = regions_seen; seen < published; seen++)
		region_take(&payload.dump->regions[seen]);
	__atomic_store_n(&regions_seen, seen, __ATOMIC_RELAXED);
	__atomic_store_n(&regions_busy, 0, __ATOMIC_RELEASE);
}

struct dump_stack *regions_stack(uint32_t reference)
{
	uint8_t *address = (uint8_t *)payload.dump + (uint64_t)reference * DUMP_STACK_ALIGN;

	for (uint32_t i = regions_count(REGIONS_STACKS); i-- > 0;) {
		const struct region *arena = regions_item(REGIONS_STACKS, i);

		if (address >= arena->base + sizeof(struct dump_arena) &&
		    address <= arena->base + arena->bytes - sizeof(struct dump_stack))
			return (struct dump_stack *)(void *)address;
	}
	return 0;
}
