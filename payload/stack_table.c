/* SPDX-License-Identifier: MIT */
/*
 * The interned stacks.
 *
 * A stack is known by a 64-bit hash of its frames and flags; two stacks with one hash would be taken for one, which for a million
 * stacks has a probability of 3e-8. The index has levels as the live table has. A new stack is written to an arena completely, then
 * a free key of its bucket becomes the hash by compare-and-swap, then the reference does. A thread that finds the key
 * without a reference does not wait for the one that set it: it offers a record of its own, and the first reference stands. Who
 * comes second gives its record back if nothing was stored behind it, else that is left unused, with all its sums 0.
 */
#include "stack_table.h"

#include <stdbool.h>

#include "regions.h"

_Static_assert(DUMP_STACK_BYTES(0u) % DUMP_STACK_ALIGN == 0 && sizeof(struct dump_arena) % DUMP_STACK_ALIGN == 0, "alignment of stacks");

static uint32_t *index_references(const struct region *table)
{
	return (uint32_t *)(void *)(table->base + table->entries * sizeof(uint64_t));
}

enum find_result { FOUND, FREE_KEY, FULL };

/*
 * Looks for hash; else for the first free key, from the oldest level on. The keys of a bucket are taken in order and stay, and a younger
 * level is only used for what finds no room in the older ones: so behind a free key there is nothing to be found.
 */
static enum find_result index_find(uint64_t hash, uint64_t **key, uint32_t **reference)
{
	uint32_t levels = regions_count(REGIONS_STACK_INDEX);

	for (uint32_t level = 0; level < levels; level++) {
		const struct region *table = regions_item(REGIONS_STACK_INDEX, level);
		uint64_t bucket = region_bucket(table, hash) * DUMP_BUCKET;
		uint64_t *keys = (uint64_t *)(void *)table->base + bucket;

		__builtin_prefetch(index_references(table) + bucket);
		for (uint32_t i = 0; i < DUMP_BUCKET; i++) {
			uint64_t value = __atomic_load_n(&keys[i], __ATOMIC_ACQUIRE);

			if (value != hash && value)
				continue;
			*key = &keys[i];
			*reference = index_references(table) + bucket + i;
			return value ? FOUND : FREE_KEY;
		}
	}
	return FULL;
}

/* bytes out of an arena, from the oldest that has room. */
static struct dump_stack *arena_allocate(uint64_t bytes, struct dump_arena **from)
{
	uint32_t count = regions_count(REGIONS_STACKS);

	for (uint32_t i = 0; i < count; i++) {
		const struct region *region = regions_item(REGIONS_STACKS, i);
		struct dump_arena *arena = (struct dump_arena *)(void *)region->base;
		uint64_t room = region->bytes - sizeof(*arena);
		uint64_t used = __atomic_load_n(&arena->used, __ATOMIC_RELAXED);

		if (used > room || bytes > room - used)
			continue;
		used = __atomic_fetch_add(&arena->used, bytes, __ATOMIC_ACQUIRE); /* pairs with arena_give_back() */
		if (used > room || bytes > room - used || used % DUMP_STACK_ALIGN)
			continue;
		*from = arena;
		return (struct dump_stack *)(void *)(region->base + sizeof(*arena) + used);
	}
	return 0;
}

static void arena_give_back(struct dump_arena *arena, const struct dump_stack *stack, uint64_t bytes)
{
	uint64_t start = (uint64_t)((const uint8_t *)stack - (const uint8_t *)(arena + 1));
	uint64_t end = start + bytes;

	__atomic_compare_exchange_n(&arena->used, &end, start, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static void stack_write(struct dump_stack *stack, uint64_t hash, const uint64_t *frames, uint32_t count, uint32_t flags)
{
	*stack = (struct dump_stack){ .hash = hash, .frame_count = count, .flags = flags };
	for (uint32_t i = 0; i < count; i++)
		stack->frames[i] = frames[i];
}

uint32_t stack_table_find(uint64_t hash)
{
	uint32_t *reference;
	uint64_t *key;

	return index_find(hash, &key, &reference) == FOUND ? __atomic_load_n(reference, __ATOMIC_ACQUIRE) : 0;
}

uint32_t stack_table_intern(uint64_t hash, const uint64_t *frames, uint32_t count, uint32_t flags)
{
	uint64_t bytes = DUMP_STACK_BYTES(count);
	struct dump_stack *stack = 0;
	struct dump_arena *arena = 0;
	enum find_result found;
	uint32_t *reference = 0, value, mine;
	uint64_t *key = 0, none;

	while ((found = index_find(hash, &key, &reference)) != FULL) {
		value = found == FOUND ? __atomic_load_n(reference, __ATOMIC_ACQUIRE) : 0;
		if (!value && !stack) {
			stack = arena_allocate(bytes, &arena);
			if (!stack)
				return 0;
			stack_write(stack, hash, frames, count, flags);
		}
		none = 0;
		if (found == FREE_KEY &&
		    !__atomic_compare_exchange_n(key, &none, hash, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		mine = stack ? (uint32_t)((uint64_t)((uint8_t *)stack - (uint8_t *)payload.dump) / DUMP_STACK_ALIGN) : 0;
		if (!value && __atomic_compare_exchange_n(reference, &value, mine, false, __ATOMIC_RELEASE,
							  __ATOMIC_ACQUIRE))
			return mine;
		if (stack)
			arena_give_back(arena, stack, bytes);
		return value;
	}
	if (stack)
		arena_give_back(arena, stack, bytes);
	return 0;
}
