/* SPDX-License-Identifier: MIT */
/*
 * The unwind tables as the payload reads them: the index in force, the rule of a frame, and what is known about an
 * address. The index is validated against the mapped size each time it is opened, each module's rows when they are
 * searched. A global cache of return address -> rule spares nearly all searches.
 *
 * What is found about a frame is one word, made for the walk (unwind.c, unwind_step.c):
 *
 *   bits  0..31  n of the rule, signed, in words
 *   bits 32..41  where the caller's frame pointer is, as in the rule
 *   bits 42..45  kind of the rule
 *   bits 48..63  module id, 0: in no module
 *
 * A cache entry is two words that are written and read separately: that word, and its xor with a key made of pc and
 * generation. A reader that finds halves of two different entries computes a wrong key. Keys are spread over 64 bits by
 * a multiplication (which is a bijection), so halves that fit by chance are as rare as a collision of 64-bit hashes.
 * The multiplication is needed only for the comparison, which is predicted; the entry is found by low bits of the pc,
 * since its address is what the walk waits for. Those of return addresses that are near each other are near each other,
 * so that those of one walk are in few pages.
 *
 * The address that was asked for last has its own entry; what had it before moves to one of the other three of the
 * line, which are seldom used. Else two frames of one stack would take it from each other at each walk, and two
 * searches in tables that are in no cache take as long as the walk of all the other frames.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hook_call.h"
#include "payload.h"
#include "unwind_table.h"

/* An index. */
struct unwind_view {
	const struct unwind_module *modules;
	const struct unwind_range *ranges;
	uint32_t module_count;
	uint32_t range_count;
	uint32_t generation;
};

#define UNWIND_FOUND_WORDS(found) ((uint64_t)(int64_t)(int32_t)(found))
#define UNWIND_FOUND_FIELD(found) ((uint32_t)((found) >> 32) & 1023u)
#define UNWIND_FOUND_KIND(found) ((uint32_t)((found) >> 42) & 15u)
#define UNWIND_FOUND_SHAPE(found) ((uint32_t)((found) >> 32) & 0xffffu) /* kind and field */
#define UNWIND_SHAPE(kind, field) ((uint32_t)(kind) << 10 | (uint32_t)(field))
#define UNWIND_FOUND_MODULE_BITS 0xffff000000000000ull /* as in dump_stack.frames */

#define UNWIND_CACHE_LOG2 13

struct unwind_cache_entry {
	uint64_t mixed; /* (atomic) key ^ found */
	uint64_t found; /* (atomic) */
};

extern struct unwind_cache_entry unwind_cache[1u << UNWIND_CACHE_LOG2] HIDDEN;

#define UNWIND_CACHE_WAYS 4  /* a line of them */
#define UNWIND_CACHE_SHIFT 2 /* hardly two calls return to the same four bytes */

static inline uint16_t unwind_cache_entry_index(uint64_t pc)
{
	return (uint16_t)((pc >> UNWIND_CACHE_SHIFT) % (1u << UNWIND_CACHE_LOG2));
}

/* Offset of the index in force, 0: none. Indexes are only appended: the same offset is the same index. */
static inline uint64_t unwind_view_offset(void)
{
	const struct unwind_header *header = (const void *)payload.tables;

	return header ? __atomic_load_n(&header->index_offset, __ATOMIC_ACQUIRE) : 0;
}

/* The index at an offset; an empty view if it is not valid. */
void unwind_view_open(struct unwind_view *view, uint64_t offset);
/* The frame with return address pc, past the cache: UNWIND_NONE if nothing is known. */
uint64_t unwind_view_search(const struct unwind_view *view, uint64_t pc);
/* The same for one that is not in its own entry: from another one of the line, else past the cache and into it. */
uint64_t unwind_view_remember(const struct unwind_view *view, uint64_t pc, uint64_t key);
/* The range that holds address and has all of flags, or NULL. */
const struct unwind_range *unwind_view_range(const struct unwind_view *view, uint64_t address, uint32_t flags);

/* salt distinguishes the generations of the index: rules of another one are not found. */
static inline uint64_t unwind_view_salt(uint32_t generation)
{
	return (uint64_t)generation << 48;
}

static inline uint64_t unwind_view_find(const struct unwind_view *view, uint64_t salt, uint64_t pc)
{
	struct unwind_cache_entry *entry = &unwind_cache[unwind_cache_entry_index(pc)];
	uint64_t found = __atomic_load_n(&entry->found, __ATOMIC_RELAXED);
	uint64_t key = (pc ^ salt) * HASH_MULTIPLIER;

	if (UNLIKELY((__atomic_load_n(&entry->mixed, __ATOMIC_RELAXED) ^ found) != key))
		return unwind_view_remember(view, pc, key);
	return found;
}
