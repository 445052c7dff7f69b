/* SPDX-License-Identifier: MIT */
/*
 * The interned stacks.
 *
 * A stack is known by a 64-bit hash of its frames and flags; two stacks with one hash would be taken for one, which for
 * a million stacks has a probability of 3e-8. The index has levels as the live table has. Each word of it is a
 * reference beside half of the hash, so a look reads one line, and the record, which is wanted next, has the whole. A
 * new stack is written to an arena completely, then its word is put into a free place of its bucket by
 * compare-and-swap. Who comes second gives its record back if nothing was stored after it, else that is left unused,
 * with all its sums 0.
 *
 * Copies of Python's code objects (code_record.h) are stored and found in the same way.
 */
#include "tables/stack_table.h"

#include <stdbool.h>

#include "tables/regions.h"

_Static_assert(DUMP_STACK_BYTES(0u) % DUMP_STACK_ALIGN == 0 && sizeof(struct dump_arena) % DUMP_STACK_ALIGN == 0,
               "alignment of stacks");

/* The record of a word of the index if it is that of hash, else NULL. */
static struct dump_stack *word_stack(uint64_t word, uint64_t hash)
{
	struct dump_stack *stack;

	if (DUMP_INDEX_CHECK(word) != (uint32_t)hash)
		return NULL;
	stack = regions_stack(DUMP_INDEX_REFERENCE(word));
	if (!stack) {
		/* Another thread knows an arena that has come since this one looked. */
		regions_refresh();
		stack = regions_stack(DUMP_INDEX_REFERENCE(word));
	}
	return stack && stack->hash == hash ? stack : NULL;
}

/*
 * Looks for hash; else *room is the first free word, from the oldest level on, or NULL. The words of a bucket are taken
 * in order and stay, and a younger level is only used for what finds no room in the older ones: so after a free word
 * there is nothing to be found.
 */
static struct dump_stack *index_find(uint64_t hash, uint32_t *reference, uint64_t **room)
{
	uint32_t levels = regions_count(REGIONS_STACK_INDEX);

	*room = NULL;
	for (uint32_t level = 0; level < levels; level++) {
		const struct region *table = regions_item(REGIONS_STACK_INDEX, level);
		uint64_t *words = (uint64_t *)(void *)table->base + region_bucket(table, hash) * DUMP_BUCKET;

		for (uint32_t i = 0; i < DUMP_BUCKET; i++) {
			uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
			struct dump_stack *stack;

			if (!word) {
				*room = &words[i];
				return NULL;
			}
			stack = word_stack(word, hash);
			if (stack) {
				*reference = DUMP_INDEX_REFERENCE(word);
				return stack;
			}
		}
	}
	return NULL;
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

struct dump_stack *stack_table_find(uint64_t hash, uint32_t *reference)
{
	uint64_t *room;

	return index_find(hash, reference, &room);
}

struct dump_stack *stack_table_store(const struct stack_draft *draft, uint32_t *reference)
{
	struct dump_stack *stack = NULL, *found;
	struct dump_arena *arena = NULL;
	uint64_t *room, none;
	uint32_t mine = 0;

	while (!(found = index_find(draft->hash, reference, &room)) && room) {
		if (!stack) {
			stack = arena_allocate(draft->bytes, &arena);
			if (!stack)
				return NULL;
			draft->write(stack, draft);
			mine = (uint32_t)((uint64_t)((uint8_t *)stack - (uint8_t *)payload.dump) / DUMP_STACK_ALIGN);
		}
		none = 0;
		if (__atomic_compare_exchange_n(room, &none, DUMP_INDEX_WORD(draft->hash, mine), false,
		                                __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
			*reference = mine;
			return stack;
		}
	}
	if (stack)
		arena_give_back(arena, stack, draft->bytes);
	return found;
}

static void stack_write(struct dump_stack *stack, const struct stack_draft *draft)
{
	const struct stack_draft_frames *d = (const struct stack_draft_frames *)draft;
	uint32_t python = DUMP_STACK_PYTHON_COUNT(d->flags);

	*stack = (struct dump_stack){ .hash = draft->hash, .frame_count = d->count, .flags = d->flags };
	for (uint32_t i = 0; i < d->count; i++)
		stack->frames[i] = d->frames[i];
	for (uint32_t i = 0; i < python; i++)
		stack->frames[d->count + i] = d->python[i];
}

struct dump_stack *stack_table_intern(struct stack_draft_frames *stack, uint32_t *reference)
{
	stack->draft.bytes = DUMP_STACK_BYTES(stack->count + DUMP_STACK_PYTHON_COUNT(stack->flags));
	stack->draft.write = stack_write;
	return stack_table_store(&stack->draft, reference);
}
