/* SPDX-License-Identifier: MIT */
/* The records of a dump that the payload has written: live blocks, history, stacks. */
#include "dump/dump_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/order.h"

#define CHUNK_ENTRIES 4096u
#define BUSY_READS 8
#define SUM_LIMIT 1e30

/* Where the file has bytes again that were ever written: a hole may be larger than all memory, and says that nothing is
 * there. */
static uint64_t next_data(const struct dump *dump, uint64_t offset)
{
	off_t at = offset <= INT64_MAX ? lseek(dump->fd, (off_t)offset, SEEK_DATA) : -1;

	if (at >= 0)
		return (uint64_t)at;
	return errno == ENXIO ? UINT64_MAX : offset;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How many whole elements of a list, from the one at an offset on, are in a hole. */
static uint64_t hole_elements(const struct dump *dump, uint64_t at, size_t each)
{
	return (next_data(dump, at) - at) / each;
}

static bool live_holds_together(const struct dump_live_record *r)
{
	return r->size <= DUMP_SIZE_LIMIT && r->rate_bytes >= 1;
}

struct live_chunk {
	struct dump_live_record records[CHUNK_ENTRIES];
	struct dump_live_record after[CHUNK_ENTRIES]; /* read a second time, for the keys */
};

/*
 * Reads one record of the live table again until its key stood still while it was read: 1 if there
 * is one, 0 if the place is free, -1 if it never stood still.
 */
static int read_live_again(struct dump *dump, uint64_t offset, struct dump_live_record *record)
{
	for (int i = 0; i < BUSY_READS; i++) {
		uint64_t after;
		if (dump_read(dump, offset, record, sizeof *record) != sizeof *record ||
		    DUMP_KEY_IS_FREE(record->address))
			return 0;
		if (record->address == DUMP_KEY_BUSY)
			continue;
		if (dump_read(dump, offset, &after, sizeof after) != sizeof after)
			return 0;
		if (record->address == after)
			return 1;
	}
	return -1;
}

static bool all_free(const struct dump_live_record *records, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!DUMP_KEY_IS_FREE(records[i].address))
			return false;
	return true;
}

/* Some records of a region, from an offset of the file on. *empty: all are free. */
static int each_live_chunk(struct dump *dump, uint64_t at, size_t n, struct live_chunk *c, bool *empty,
                           int (*fn)(void *, const struct dump_live_record *), void *arg)
{
	const size_t bytes = sizeof c->records[0];

	n = dump_read(dump, at, c->records, n * bytes) / bytes;
	*empty = all_free(c->records, n);
	if (*empty)
		return 0;
	n = dump_read(dump, at, c->after, n * bytes) / bytes;
	for (size_t i = 0; i < n; i++) {
		struct dump_live_record *record = &c->records[i];
		if (DUMP_KEY_IS_FREE(record->address))
			continue;
		if (record->address == DUMP_KEY_BUSY || record->address != c->after[i].address) {
			int got = read_live_again(dump, at + i * bytes, record);
			if (got < 0)
				dump_skip(dump, DUMP_SKIP_busy);
			if (got <= 0)
				continue;
		}
		if (!live_holds_together(record)) {
			dump_skip(dump, DUMP_SKIP_live);
			continue;
		}
		int r = fn(arg, record);
		if (r)
			return r;
	}
	return 0;
}

int dump_each_live(struct dump *dump, int (*fn)(void *arg, const struct dump_live_record *record), void *arg)
{
	AUTO_FREE struct live_chunk *chunk = malloc(sizeof *chunk);

	if (!chunk)
		return -ENOMEM;
	for (uint32_t i = 0; i < dump->region_count; i++) {
		const struct dump_region *region = &dump->regions[i];
		if (region->kind != DUMP_REGION_LIVE)
			continue;
		const uint64_t records_at = region->offset + DUMP_LIVE_RECORDS_AT(region->entries);
		for (uint64_t first = 0; first < region->entries; first += CHUNK_ENTRIES) {
			const size_t bytes = sizeof(struct dump_live_record);
			uint64_t left = region->entries - first, at = records_at + first * bytes;
			bool empty;
			if (at >= dump->file_bytes)
				break;
			int r = each_live_chunk(dump, at, left < CHUNK_ENTRIES ? left : CHUNK_ENTRIES, chunk, &empty,
			                        fn, arg);
			if (r)
				return r;
			if (empty && left > CHUNK_ENTRIES)
				first += least(hole_elements(dump, at + CHUNK_ENTRIES * bytes, bytes),
				               left - CHUNK_ENTRIES);
		}
	}
	return 0;
}

/* A block that is somewhere in a history region. */
struct history_place {
	uint64_t sequence;
	uint64_t offset;
};

ORDER_BY(compare_places, struct history_place, sequence);

/* The blocks that were ever used, sorted by sequence: as many as the file has, 16 bytes for each 4096. */
static int find_history(struct dump *dump, struct history_place **places, size_t *count)
{
	for (uint32_t i = 0; i < dump->region_count; i++) {
		const struct dump_region *region = &dump->regions[i];
		if (region->kind != DUMP_REGION_HISTORY)
			continue;
		for (uint64_t b = 0; b < region->entries; b++) {
			uint64_t offset = region->offset + b * DUMP_HISTORY_BLOCK_BYTES;
			uint64_t sequence;
			if (offset >= dump->file_bytes ||
			    dump_read(dump, offset, &sequence, sizeof sequence) != sizeof sequence)
				break;
			if (!sequence) {
				b += least(hole_elements(dump, offset + DUMP_HISTORY_BLOCK_BYTES,
				                         DUMP_HISTORY_BLOCK_BYTES),
				           region->entries - b - 1);
				continue;
			}
			if (!grow_list(*places, *count))
				return -ENOMEM;
			(*places)[(*count)++] = (struct history_place){ sequence, offset };
		}
	}
	if (*count)
		qsort(*places, *count, sizeof **places, compare_places);
	return 0;
}

static int each_history_block(struct dump *dump, const struct history_place *place, struct dump_history_block *block,
                              int (*fn)(void *, const struct dump_history_record *), void *arg)
{
	size_t got = dump_read(dump, place->offset, block, sizeof *block);
	size_t head = offsetof(struct dump_history_block, records);

	/* A ring that wrapped meanwhile gave the block to another: it is newer than the end that we read to. */
	if (got < head || block->sequence != place->sequence)
		return 0;
	if (block->used > DUMP_HISTORY_RECORDS) {
		dump_skip(dump, DUMP_SKIP_history);
		return 0;
	}
	size_t whole = (got - head) / sizeof block->records[0];
	for (size_t i = 0; i < block->used && i < whole; i++) {
		const struct dump_history_record *record = &block->records[i];
		if (record->size > DUMP_SIZE_LIMIT || !record->rate_bytes) {
			dump_skip(dump, DUMP_SKIP_history);
			continue;
		}
		int r = fn(arg, record);
		if (r)
			return r;
	}
	return 0;
}

int dump_each_history(struct dump *dump, int (*fn)(void *arg, const struct dump_history_record *record), void *arg)
{
	AUTO_FREE struct history_place *places = NULL;
	AUTO_FREE struct dump_history_block *block = malloc(sizeof *block);
	size_t count = 0;

	if (!block)
		return -ENOMEM;
	int r = find_history(dump, &places, &count);
	for (size_t i = 0; !r && i < count; i++)
		r = each_history_block(dump, &places[i], block, fn, arg);
	return r;
}

uint64_t dump_expected_samples(const struct dump *dump)
{
	uint64_t taken = dump_counter(dump, DUMP_COUNTER_samples_taken);
	uint64_t freed = dump_counter(dump, DUMP_COUNTER_samples_freed);
	uint64_t blocks = 0;

	for (uint32_t i = 0; i < dump->region_count; i++)
		if (dump->regions[i].kind == DUMP_REGION_HISTORY)
			blocks += dump->regions[i].entries;
	if (blocks > dump->header.history_next)
		blocks = dump->header.history_next;
	return (taken > freed ? taken - freed : 0) + blocks * DUMP_HISTORY_RECORDS;
}

static const struct dump_region *region_of_stack(const struct dump *dump, uint64_t offset)
{
	for (uint32_t i = 0; i < dump->region_count; i++) {
		const struct dump_region *r = &dump->regions[i];
		if (r->kind == DUMP_REGION_STACKS && offset >= r->offset + sizeof(struct dump_arena) &&
		    offset < dump_region_end(dump, r))
			return r;
	}
	return NULL;
}

uint64_t dump_stack_place(const struct dump *dump, uint32_t reference, uint64_t *offset)
{
	*offset = (uint64_t)reference * DUMP_STACK_ALIGN;
	const struct dump_region *region = region_of_stack(dump, *offset);

	return region ? dump_region_end(dump, region) - *offset : 0;
}

/* Records of code are only where there are Python frames: elsewhere nothing need be looked at. */
static bool is_code(struct dump *dump, uint32_t reference)
{
	uint64_t offset, room = dump->header.python_version ? dump_stack_place(dump, reference, &offset) : 0;
	uint32_t flags;

	return room >= sizeof(struct dump_code) &&
	       dump_read(dump, offset + offsetof(struct dump_code, flags), &flags, sizeof flags) == sizeof flags &&
	       flags & DUMP_STACK_CODE;
}

static int visit_stack(struct dump *dump, uint64_t word, int (*fn)(void *arg, uint32_t reference), void *arg)
{
	uint32_t reference = DUMP_INDEX_REFERENCE(word);

	return word && !is_code(dump, reference) ? fn(arg, reference) : 0;
}

/* Between two records, in units of their alignment: they may begin cache lines. */
#define GAP_MAX 3

/* Of a dump without an index: one record behind the other, as far as they make sense. */
static int walk_stacks(struct dump *dump, const struct dump_region *region, int (*fn)(void *arg, uint32_t reference),
                       void *arg)
{
	uint64_t at = region->offset + sizeof(struct dump_arena), end = dump_region_end(dump, region);
	struct dump_arena arena;
	struct dump_stack_copy head;
	int r = 0, gap = 0;

	if (dump_read(dump, region->offset, &arena, sizeof arena) != sizeof arena)
		return 0;
	end = end > at && arena.used < end - at ? at + arena.used : end;
	while (!r && at + sizeof head.stack <= end &&
	       dump_read(dump, at, &head.stack, sizeof head.stack) == sizeof head.stack) {
		if (!head.stack.hash && gap++ < GAP_MAX) {
			at += DUMP_STACK_ALIGN;
			continue;
		}
		gap = 0;
		if (!head.stack.hash || head.stack.frame_count > DUMP_FRAMES_MAX || head.stack.flags & DUMP_STACK_CODE)
			break;
		r = fn(arg, (uint32_t)(at / DUMP_STACK_ALIGN));
		size_t frames = head.stack.frame_count + dump_python_count(&head);
		at += (sizeof head.stack + frames * sizeof head.frames[0] + DUMP_STACK_ALIGN - 1) &
		      ~(uint64_t)(DUMP_STACK_ALIGN - 1);
	}
	return r;
}

static bool has_index(const struct dump *dump)
{
	for (uint32_t i = 0; i < dump->region_count; i++)
		if (dump->regions[i].kind == DUMP_REGION_STACK_INDEX)
			return true;
	return false;
}

int dump_each_stack(struct dump *dump, int (*fn)(void *arg, uint32_t reference), void *arg)
{
	AUTO_FREE uint64_t *words = malloc(CHUNK_ENTRIES * sizeof *words);
	bool index = has_index(dump);

	if (!words)
		return -ENOMEM;
	for (uint32_t i = 0; i < dump->region_count; i++) {
		const struct dump_region *region = &dump->regions[i];
		if (!index && region->kind == DUMP_REGION_STACKS) {
			int r = walk_stacks(dump, region, fn, arg);
			if (r)
				return r;
		}
		if (region->kind != DUMP_REGION_STACK_INDEX)
			continue;
		for (uint64_t first = 0; first < region->entries; first += CHUNK_ENTRIES) {
			uint64_t left = region->entries - first;
			size_t want = left < CHUNK_ENTRIES ? left : CHUNK_ENTRIES;
			uint64_t offset = region->offset + first * sizeof *words;
			bool empty = true;
			if (offset >= dump->file_bytes)
				break;
			size_t n = dump_read(dump, offset, words, want * sizeof *words) / sizeof *words;
			for (size_t k = 0; k < n; k++) {
				int r = visit_stack(dump, words[k], fn, arg);
				if (r)
					return r;
				empty = empty && !words[k];
			}
			if (empty && left > CHUNK_ENTRIES)
				first += least(
					hole_elements(dump, offset + CHUNK_ENTRIES * sizeof *words, sizeof *words),
					left - CHUNK_ENTRIES);
		}
	}
	return 0;
}

uint64_t dump_stack_room(const struct dump *dump)
{
	uint64_t room = 0;

	for (uint32_t i = 0; i < dump->region_count; i++)
		if (dump->regions[i].kind == DUMP_REGION_STACKS)
			room += dump_region_end(dump, &dump->regions[i]) - dump->regions[i].offset;
	return room;
}

void dump_skip_stack(struct dump *dump)
{
	dump_skip(dump, DUMP_SKIP_stack);
}

static bool sums_make_sense(const struct dump_stack *s)
{
	const double sums[] = { s->excess_bytes, s->excess_count, s->variance_bytes, s->variance_count };

	for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
		if (!(sums[i] >= 0) || sums[i] > SUM_LIMIT)
			return false;
	return true;
}

int dump_read_stack(struct dump *dump, uint32_t reference, struct dump_stack_copy *copy)
{
	uint64_t offset, room = dump_stack_place(dump, reference, &offset);
	struct dump_stack_copy fresh = { 0 };

	if (room < sizeof fresh.stack)
		goto bad;
	size_t want = room < sizeof fresh ? room : sizeof fresh;
	size_t got = dump_read(dump, offset, &fresh, want);
	if (got < sizeof fresh.stack || !fresh.stack.hash || fresh.stack.frame_count > DUMP_FRAMES_MAX ||
	    fresh.stack.flags & DUMP_STACK_CODE || dump_python_count(&fresh) > DUMP_PYTHON_FRAMES_MAX ||
	    fresh.stack.frame_count + dump_python_count(&fresh) > (got - sizeof fresh.stack) / sizeof fresh.frames[0])
		goto bad;
	if (!sums_make_sense(&fresh.stack)) {
		dump_skip(dump, DUMP_SKIP_sums);
		fresh.stack.excess_bytes = fresh.stack.excess_count = 0;
		fresh.stack.variance_bytes = fresh.stack.variance_count = 0;
		fresh.stack.taken_bytes = fresh.stack.taken_count = 0;
		fresh.stack.unkept = fresh.stack.unkept_parts = 0;
	}
	*copy = fresh;
	return 0;
bad:
	dump_skip(dump, DUMP_SKIP_stack);
	return -EPROTO;
}
