/* SPDX-License-Identifier: MIT */
/* When the dump gets more room, and how much: always before the payload needs it. */
#include "recording/dump_writer.h"

#include "recording/dump_writer_internal.h"

#define SHORT_NS 1000000000u             /* until memory that was short is asked for again */
#define STACKS_BYTES_LEAST (64ull << 10) /* where what is wanted has no room */
#define STACKS_BYTES_MAX (64ull << 20)
#define HISTORY_BYTES_MAX (64ull << 20) /* all history regions together; older records are dropped then */
#define STACKS_PART 8u                  /* of the memory, at least, is for stacks */
#define STACK_BYTES_FEW 128u            /* of one stack record with a few frames */

/* What a kind has: its regions' entries, and the youngest region. */
static uint64_t capacity_of(const struct dump_writer *w, uint32_t kind, const struct dump_region **last)
{
	uint64_t entries = 0;

	for (uint32_t i = 0; i < w->own->region_count; i++)
		if (w->own->regions[i].kind == kind) {
			entries += w->own->regions[i].entries;
			*last = &w->own->regions[i];
		}
	return entries;
}

uint64_t dump_writer_live(const struct dump_writer *w)
{
	uint64_t taken = dump_writer_counter(w, DUMP_COUNTER_samples_taken);
	uint64_t gone = dump_writer_counter(w, DUMP_COUNTER_samples_freed) +
	                dump_writer_counter(w, DUMP_COUNTER_frees_missed) +
	                dump_writer_counter(w, DUMP_COUNTER_lost_live_full) +
	                dump_writer_counter(w, DUMP_COUNTER_samples_thinned);

	return taken > gone ? taken - gone : 0;
}

uint64_t dump_writer_live_capacity(const struct dump_writer *w)
{
	const struct dump_region *last;

	return capacity_of(w, DUMP_REGION_LIVE, &last);
}

/* Live samples can be thinned, stacks cannot: so a part of the file is kept back for those. */
static uint64_t kept_back(const struct dump_writer *w)
{
	uint64_t part = w->max_bytes / STACKS_PART, bytes = 0;

	for (uint32_t i = 0; i < w->own->region_count; i++) {
		const struct dump_region *r = &w->own->regions[i];
		if (r->kind == DUMP_REGION_STACKS || r->kind == DUMP_REGION_STACK_INDEX)
			bytes += r->bytes;
	}
	return bytes < part ? part - bytes : 0;
}

static int grow_live(struct dump_writer *w, struct err *e)
{
	const struct dump_region *last = NULL;
	uint64_t capacity = capacity_of(w, DUMP_REGION_LIVE, &last);

	/* Of a bucket for 8 with 2 entries on average one in a thousand is full; with 4, one in twenty. */
	if (dump_writer_live(w) <= capacity / 4)
		return 0;
	uint64_t bytes = DUMP_LIVE_BYTES(last->entries * 2);
	if (w->used + bytes + kept_back(w) > w->max_bytes)
		return dump_writer_full(e);
	return dump_writer_add_region(w, DUMP_REGION_LIVE, bytes, last->entries * 2, e);
}

/* An arena of so many bytes, or of half as many, and so on: the last ones are small. */
static int add_arena(struct dump_writer *w, uint64_t bytes, struct err *e)
{
	while (w->used + bytes > w->max_bytes && bytes > STACKS_BYTES_LEAST)
		bytes /= 2;
	return dump_writer_add_region(w, DUMP_REGION_STACKS, bytes, 0, e);
}

/* How much of an arena of stacks the payload has filled, as far as it can be believed. */
static uint64_t stacks_used(const struct dump_writer *w, const struct dump_region *r)
{
	struct dump_arena *arena = dump_writer_at(w, r->offset);
	uint64_t used = atomic_load_explicit(dump_writer_u64(&arena->used), memory_order_relaxed);

	return used < r->bytes ? used : r->bytes;
}

/* Grown well ahead: what is left is as much as half of the youngest arena. */
static int grow_arenas(struct dump_writer *w, struct err *e)
{
	const struct dump_region *last = NULL;

	capacity_of(w, DUMP_REGION_STACKS, &last);
	if (stacks_used(w, last) <= last->bytes / 2)
		return 0;
	return add_arena(w, last->bytes * 2 < STACKS_BYTES_MAX ? last->bytes * 2 : STACKS_BYTES_MAX, e);
}

/* By the load of the live table, with an upper bound for the number of stacks. */
static int grow_index(struct dump_writer *w, struct err *e)
{
	const struct dump_region *last = NULL;
	uint64_t capacity = capacity_of(w, DUMP_REGION_STACK_INDEX, &last), used = 0;

	for (uint32_t i = 0; i < w->own->region_count; i++) {
		const struct dump_region *r = &w->own->regions[i];
		if (r->kind != DUMP_REGION_STACKS)
			continue;
		used += stacks_used(w, r);
	}
	if (used / STACK_BYTES_FEW <= capacity / 4)
		return 0;
	return dump_writer_add_region(w, DUMP_REGION_STACK_INDEX, last->entries * 2 * DUMP_INDEX_ENTRY_BYTES,
	                              last->entries * 2, e);
}

static int grow_history(struct dump_writer *w, struct err *e)
{
	const struct dump_region *last = NULL;
	uint64_t blocks = capacity_of(w, DUMP_REGION_HISTORY, &last);
	uint64_t limit = w->max_bytes / 4 < HISTORY_BYTES_MAX ? w->max_bytes / 4 : HISTORY_BYTES_MAX;

	if (atomic_load_explicit(dump_writer_u64(&w->shared->history_next), memory_order_relaxed) <= blocks / 2 ||
	    (blocks + last->entries * 2) * DUMP_HISTORY_BLOCK_BYTES > limit)
		return 0;
	return dump_writer_add_region(w, DUMP_REGION_HISTORY, last->entries * 2 * DUMP_HISTORY_BLOCK_BYTES,
	                              last->entries * 2, e);
}

/*
 * What cannot grow for the sake of the limit is said once, and never tried again. Where memory is short it is tried
 * again after a while, and said once for all.
 */
static int try_to_grow(struct dump_writer *w, bool *is_full, int (*grow)(struct dump_writer *, struct err *),
                       const char *what, struct err *e)
{
	struct err why;

	if (*is_full || grow(w, &why) == 0)
		return 0;
	*is_full = true;
	if (why.code != ENOMEM)
		return err_set(e, ENOSPC, "%s: %s", why.text, what);
	w->short_until_ns = clock_monotonic_ns() + SHORT_NS;
	if (w->said_short)
		return 0;
	w->said_short = true;
	return err_set(e, ENOMEM, "%s: %s", why.text, what);
}

static void try_again_later(struct dump_writer *w)
{
	if (!w->short_until_ns || clock_monotonic_ns() < w->short_until_ns)
		return;
	w->live_full = w->stacks_full = w->index_full = w->history_full = false;
	w->short_until_ns = 0;
}

int dump_writer_grow(struct dump_writer *w, struct err *e)
{
	try_again_later(w);
	int rc = try_to_grow(w, &w->live_full, grow_live,
	                     "from now on live samples are thinned when their table is crowded", e);
	if (rc == 0)
		rc = try_to_grow(
			w, &w->stacks_full, grow_arenas,
			"from now on a stack that is new may find no room, its samples then count as unknown stack", e);
	if (rc == 0)
		rc = try_to_grow(w, &w->index_full, grow_index,
		                 "from now on a stack that is new may find no room in the index, its samples then "
		                 "count as unknown stack",
		                 e);
	if (rc == 0)
		rc = try_to_grow(w, &w->history_full, grow_history,
		                 "from now on the oldest of the history is dropped sooner", e);
	return rc;
}
