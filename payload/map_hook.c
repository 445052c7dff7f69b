/* SPDX-License-Identifier: MIT */
/* The slow path of mmap, munmap and mremap, see map_hook.h. */
#include "map_hook.h"

#include <errno.h>

#include "hook.h"
#include "recorder.h"
#include "sampler.h"
#include "syscalls.h"
#include "tables/filter.h"
#include "tables/mappings.h"
#include "walk/rule_cache.h"

#define MAP_FAILURE UINT64_MAX
/* From linux/mman.h. */
#define REMAP_MAYMOVE 1u
#define REMAP_FIXED 2u
#define REMAP_DONTUNMAP 4u

/* What munmap and mremap take out may have to be put back. */
#define AWAY_MAX 4u
struct away {
	uint32_t count;
	uint32_t beyond; /* parts that had no room: they go before it is known whether they do */
	struct away_part {
		struct dump_live_record record; /* of what is sampled */
		struct mapping mapping;
		bool whole; /* nothing of its record is left */
	} parts[AWAY_MAX];
};

/* Pages that go. */
struct taking {
	const struct hook_call *call;
	struct away *away; /* NULL: they have gone */
	struct recorder recorder;
	bool open;      /* the recorder is */
	uint16_t flags; /* of the history */
};

/* A part is what the whole was, of which it remembers the size: the probability is that of the whole. */
static struct dump_live_record part_of(const struct dump_live_record *whole, uint64_t address, uint64_t size)
{
	struct dump_live_record part = *whole;

	part.address = address;
	part.size = size;
	if (!(part.flags & DUMP_LIVE_PART))
		part.usable = whole->size; /* of a mapping it is not used otherwise */
	part.flags |= DUMP_LIVE_PART;
	return part;
}

/* A record of what is left at a new beginning. */
static bool record_rest(struct taking *t, const struct dump_live_record *rest)
{
	struct dump_stack *stack = regions_stack(rest->stack);
	enum live_reserved reserved;
	struct live_entry entry;

	while ((reserved = live_table_reserve(rest->address, &entry)) == LIVE_PRESENT)
		recorder_finish(&t->recorder, &entry, DUMP_HISTORY_FREE_MISSED);
	if (reserved == LIVE_RESERVED) {
		live_table_publish(&entry, rest);
		return true;
	}
	counter_add(&t->recorder.counters, DUMP_COUNTER_lost_live_full, 1);
	if (stack)
		__atomic_fetch_add(rest->flags & DUMP_LIVE_PART ? &stack->unkept_parts : &stack->unkept, 1,
		                   __ATOMIC_RELAXED);
	return false;
}

/* Of a mapping that may have to be put back, the part that is in start … end; its record, if it has one. False: it goes
 * now, since nothing is to be put back, or there is no room. */
static bool lay_away(struct taking *t, const struct mapping *was, uint64_t start, uint64_t end,
                     const struct dump_live_record *record, bool whole)
{
	struct away_part *part;

	if (!t->away)
		return false;
	if (t->away->count == AWAY_MAX) {
		t->away->beyond++;
		return false;
	}
	part = &t->away->parts[t->away->count++];
	part->mapping = *was;
	part->mapping.start = start > was->start ? start : was->start;
	part->mapping.end = end < was->end ? end : was->end;
	part->mapping.sampled = record != 0;
	part->whole = whole;
	if (record)
		part->record = *record;
	return true;
}

/* Shrinks the record, which is the caller's, to what is left before start and from end on. */
static bool shrink(struct taking *t, const struct live_entry *entry, const struct mapping *was, uint64_t start,
                   uint64_t end)
{
	struct dump_live_record whole = *entry->record, gone, rest, left;
	uint64_t until = end - was->start; /* what is before it has gone, but for: */
	uint64_t before = start > was->start ? start - was->start : 0, after = 0;

	whole.address = entry->address;
	before = before < whole.size ? before : whole.size; /* its last page may not be whole */
	if (end < was->end && until < whole.size)
		after = whole.size - until;
	gone = part_of(&whole, start > was->start ? start : was->start, whole.size - before - after);
	rest = part_of(&whole, end, after);
	if (gone.size && !lay_away(t, was, start, end, &gone, false))
		history_append(t->recorder.thread, &t->recorder.counters, &gone, t->recorder.stamp, t->flags);
	if (before) {
		left = part_of(&whole, was->start, before);
		entry->record->size = left.size;
		entry->record->usable = left.usable;
		entry->record->flags = left.flags;
		live_table_put_back(entry);
	} else {
		live_table_drop(entry);
	}
	if (before && after) /* for memattach, which sees from these counters how full the live table is */
		counter_add(&t->recorder.counters, DUMP_COUNTER_samples_taken, 1);
	return (after && record_rest(t, &rest)) || before;
}

/* Takes the record of a mapping that begins there. Where one has gone unseen, and its record with it or by a thinning,
 * an allocator's block may be. */
static bool take_mapping(uint64_t start, struct live_entry *entry)
{
	if (!live_table_take(start, entry))
		return false;
	if (entry->record->hook >= HOOK_mmap && entry->record->hook <= HOOK_mremap)
		return true;
	live_table_put_back(entry);
	return false;
}

static bool on_taken(void *arg, const struct mapping *was, uint64_t start, uint64_t end)
{
	struct taking *t = arg;
	struct live_entry entry;

	if (!was->sampled || !take_mapping(was->start, &entry)) {
		lay_away(t, was, start, end, 0, false);
		return false;
	}
	if (!t->open)
		recorder_open(&t->recorder, t->call, clock_stamp());
	t->open = true;
	if (!clock_lease_holds(t->recorder.stamp)) {
		live_table_put_back(&entry);
		return true;
	}
	if (start > was->start || end < was->end)
		return shrink(t, &entry, was, start, end);
	struct dump_live_record whole = *entry.record;
	whole.address = entry.address;
	if (lay_away(t, was, start, end, &whole, true))
		live_table_drop(&entry);
	else
		recorder_finish(&t->recorder, &entry, t->flags);
	return false;
}

/* Others the kernel refuses. */
static bool is_range(uint64_t start, uint64_t bytes)
{
	return mapping_end(start, bytes) > start && bytes <= mapping_end(start, bytes) - start;
}

/* What does not depend on the rate counts by itself. */
static void count_cycles(const struct taking *t, uint64_t cycles)
{
	if (t->open)
		recorder_add_cycles(&t->recorder.counters, 1, cycles);
	else
		__atomic_fetch_add(&payload.dump->mapping_cycles, cycles < CYCLES_MAX ? cycles : CYCLES_MAX,
		                   __ATOMIC_RELAXED);
}

static void count_lost(uint32_t count)
{
	struct counter_row counters = counter_row(0, arch_thread_pointer());

	if (count)
		counter_add(&counters, DUMP_COUNTER_lost_mappings, count);
}

static void take_pages(struct taking *t, uint64_t start, uint64_t end)
{
	uint64_t stamp = clock_stamp();

	regions_refresh();
	count_lost(mappings_take(start, end, on_taken, t));
	count_cycles(t, clock_stamp() - stamp);
	if (t->open)
		recorder_leave(&t->recorder);
}

static void take(const struct hook_call *call, uint64_t start, uint64_t bytes, uint16_t flags)
{
	struct taking t = { .call = call, .flags = flags };

	if (is_range(start, bytes) && start % PAGE_BYTES == 0)
		take_pages(&t, start, mapping_end(start, bytes));
}

/* Whether a file was mapped there when memattach looked last, before the session or in it. */
static bool was_file(uint64_t address)
{
	struct unwind_view view;

	unwind_view_open(&view, unwind_view_offset());
	return unwind_view_range(&view, address, UNWIND_RANGE_FILE) != 0;
}

static void follow(struct mapping mapping)
{
	uint64_t stamp = clock_stamp();

	mapping.plain |= !mapping.file && !mapping.sampled && was_file(mapping.start);
	if (mapping.file || mapping.sampled || mapping.plain)
		count_lost(!mappings_add(&mapping));
	count_cycles(&(struct taking){ .open = false }, clock_stamp() - stamp);
}

/* A mapping has come. */
static void keep(const struct hook_call *call, uint64_t start, uint64_t bytes, uint32_t rate, bool replaces)
{
	take(call, start, bytes, replaces ? 0 : DUMP_HISTORY_FREE_MISSED);
	if (call->inner)
		return;
	if (rate)
		hook_record_block(call, start, bytes, rate);
	follow((struct mapping){ start, mapping_end(start, bytes), call->file, rate != 0, false });
}

uint64_t map_hook_map(struct hook_call *call)
{
	const uint64_t *a = call->arguments;
	uint32_t rate = sampler_charge(call, a[1]);
	uint64_t result = hook_original(call);

	call->file = !(a[3] & MAP_ANONYMOUS);
	if (result != MAP_FAILURE)
		keep(call, result, a[1], rate, a[3] & MAP_FIXED);
	return result;
}

static bool on_joined(void *arg, const struct mapping *was, uint64_t start, uint64_t end)
{
	struct mapping *whole = arg;

	whole->start = was->plain && start < whole->start ? start : whole->start;
	whole->end = was->plain && end > whole->end ? end : whole->end;
	return was->sampled;
}

/* A file may go page by page: what has gone beside is one with it. */
static void join_plain(struct mapping *whole, uint64_t page)
{
	struct mapping beside;

	if (mappings_find(page, page + PAGE_BYTES, &beside) && beside.plain)
		count_lost(mappings_take(beside.start, beside.end, on_joined, whole));
}

/* What comes there now is not the file that was there before the session: it may be memory that nobody looks at. */
static void forget_file(uint64_t start, uint64_t end)
{
	struct mapping gone = { start, end, false, false, true };

	if (start >= end || !(was_file(start) || was_file(end - 1)))
		return;
	join_plain(&gone, start - PAGE_BYTES);
	join_plain(&gone, end);
	follow(gone);
}

/* What munmap or mremap does to start … end, if it succeeds. */
struct moving {
	uint64_t start, end;
	uint64_t distance; /* of what is elsewhere then, with all its parts as they are; 0: it is not */
	bool asks;         /* the kernel may be asked what has gone, if it fails */
	struct away away;
	struct live_entry entry; /* of what has no entry among the mappings */
	bool goes;               /* pages go that another thread may get before the call returns */
	bool stays;   /* they stay the caller's, or are of too many mappings: they are taken out afterwards */
	bool known;   /* entry is the caller's */
	bool several; /* mappings. Of one the record has the bytes that were asked for, so that a new size within its
	               * last page makes a new record; of several all is in pages */
};

static bool is_file(const struct live_entry *entry)
{
	const struct dump_stack *stack = regions_stack(entry->record->stack);

	return stack && stack->flags & DUMP_STACK_FILE;
}

static uint64_t pages_of(uint64_t bytes)
{
	return mapping_end(0, bytes);
}

/* Nothing goes or comes, of whatever mappings it is: what was mapped there is elsewhere. */
static bool moves_only(const struct moving *m, const uint64_t *a)
{
	return a[1] && (m->several ? pages_of(a[2]) == pages_of(a[1]) : a[2] == a[1]) && a[3] & REMAP_FIXED &&
	       !(a[3] & REMAP_DONTUNMAP);
}

/* What is behind the new end goes, whatever mappings it is of; nothing comes. */
static bool shrinks_in_place(const struct moving *m, const uint64_t *a)
{
	return a[2] && !(a[3] & (REMAP_FIXED | REMAP_DONTUNMAP)) &&
	       (m->several ? pages_of(a[2]) <= pages_of(a[1])
	                   : a[2] == a[1] || (a[2] < a[1] && a[2] % PAGE_BYTES == 0));
}

/* What has no entry is known by its beginning. */
static bool take_known(uint64_t start, struct live_entry *entry)
{
	struct counter_row counters;

	if (!filter_maybe(start))
		return false;
	counters = counter_row(0, arch_thread_pointer());
	counter_add(&counters, DUMP_COUNTER_filter_hits, 1);
	return clock_lease_holds(clock_stamp()) && live_table_take(start, entry);
}

static void move_begin(const struct hook_call *call, struct moving *m, bool followed)
{
	const uint64_t *a = call->arguments;
	m->several = is_range(a[0], a[1]) && mappings_count(a[0], mapping_end(a[0], a[1]), 2) > 1;
	const bool shrinks = shrinks_in_place(m, a);

	m->start = a[0] + (shrinks ? pages_of(a[2]) : 0);
	m->end = mapping_end(a[0], a[1]);
	m->distance = moves_only(m, a) ? a[4] - a[0] : 0;
	m->asks = true;
	m->away.count = m->away.beyond = 0;
	m->known = false;
	m->goes = m->stays = false;
	if (!is_range(a[0], a[1]) || a[0] % PAGE_BYTES || m->start >= m->end || a[3] & REMAP_DONTUNMAP)
		return; /* what is there stays */
	m->goes = (shrinks || a[3] & REMAP_MAYMOVE) && mappings_count(m->start, m->end, AWAY_MAX + 1) <= AWAY_MAX;
	m->stays = !m->goes;
	if (m->goes)
		take_pages(&(struct taking){ .call = call, .away = &m->away }, m->start, m->end);
	if (!shrinks && !followed)
		m->known = take_known(a[0], &m->entry);
}

/*
 * Whether something is still mapped there, after a call of mremap that failed. To resize a page to a page changes
 * nothing and fails where there is none (on Linux 5.16 and 5.17 with EFAULT as if it were an address); before 5.16 it
 * does not fail, and all is taken for still mapped. It is a system call, but one like that which the thread has just
 * made: a filter that allows the one allows the other.
 */
#ifdef MEMATTACH_HOSTED
int64_t (*map_hook_ask)(uint64_t page);
#else
static int64_t map_hook_ask(uint64_t page)
{
	return syscall_mremap(page, PAGE_BYTES, PAGE_BYTES, REMAP_MAYMOVE);
}
#endif

static void finish_part(struct recorder *r, const struct away_part *part)
{
	if (!part->mapping.sampled)
		return;
	history_append(r->thread, &r->counters, &part->record, r->stamp, 0);
	if (part->whole)
		counter_add(&r->counters, DUMP_COUNTER_samples_freed, 1);
}

static void put_part_back(struct taking *t, const struct away_part *part)
{
	if (part->mapping.sampled && !part->whole) /* one record more: see shrink() */
		counter_add(&t->recorder.counters, DUMP_COUNTER_samples_taken, 1);
	if (!part->mapping.sampled || record_rest(t, &part->record))
		follow(part->mapping);
}

static bool is_gone(uint64_t page)
{
	const int64_t answer = map_hook_ask(page);

	return answer == -EFAULT || answer == EFAULT;
}

static bool has_gone(const struct away_part *part)
{
	return !part->mapping.plain && is_gone(part->mapping.start);
}

static bool some_has_gone(const struct moving *m)
{
	for (uint32_t i = 0; i < m->away.count; i++)
		if (has_gone(&m->away.parts[i]))
			return true;
	return false;
}

static void put_part_elsewhere(struct taking *t, const struct away_part *part, uint64_t distance)
{
	struct away_part there = *part;

	there.record.address += distance;
	there.mapping.start += distance;
	there.mapping.end += distance;
	put_part_back(t, &there);
}

/* All of it has gone, or of a call that failed what the kernel says: MREMAP_FIXED may have moved some, and another
 * thread may have moved or unmapped all of it before; the rest is back. */
static void end_away(struct taking *t, const struct moving *m, bool moved)
{
	for (uint32_t i = 0; i < m->away.count; i++) {
		const struct away_part *part = &m->away.parts[i];
		bool gone = moved || (m->asks && has_gone(part));

		if (gone && m->distance)
			put_part_elsewhere(t, part, m->distance);
		else if (gone)
			finish_part(&t->recorder, part);
		else
			put_part_back(t, part);
	}
	if (m->known && moved)
		recorder_finish(&t->recorder, &m->entry, 0);
	else if (m->known)
		live_table_put_back(&m->entry);
}

static bool has_records(const struct moving *m)
{
	for (uint32_t i = 0; i < m->away.count; i++)
		if (m->away.parts[i].mapping.sampled)
			return true;
	return m->known;
}

static void move_end(const struct hook_call *call, const struct moving *m, bool moved)
{
	struct taking t = { .call = call, .open = has_records(m) };

	if (t.open)
		recorder_open(&t.recorder, call, clock_stamp());
	end_away(&t, m, moved);
	if (t.open)
		recorder_close(&t.recorder);
	if (m->stays && moved)
		take(call, m->start, m->end - m->start, 0);
	if ((m->goes || m->stays) && moved)
		forget_file(m->start, m->end);
	if (!moved)
		count_lost(m->away.beyond);
}

uint64_t map_hook_unmap(struct hook_call *call)
{
	const uint64_t *a = call->arguments;
	struct moving m;
	uint64_t result;

	if (!is_range(a[0], a[1]) || a[0] % PAGE_BYTES)
		return hook_original(call); /* which fails */
	m.start = a[0];
	m.end = mapping_end(a[0], a[1]);
	m.goes = true;
	m.distance = 0;
	m.asks = m.stays = m.several = false;
	m.away.count = m.away.beyond = 0;
	take_pages(&(struct taking){ .call = call, .away = &m.away }, m.start, m.end);
	m.known = take_known(a[0], &m.entry);
	result = hook_original(call);
	move_end(call, &m, result == 0);
	return result;
}

static void take_if_gone(const struct hook_call *call, uint64_t start, uint64_t end)
{
	struct mapping mapping;

	if (start < end && mappings_find(start, end, &mapping) && !mapping.plain &&
	    is_gone(mapping.start > start ? mapping.start : start))
		take(call, start, end - start, 0);
}

/* MREMAP_FIXED that fails may have unmapped what was at its destination before; of several mappings it may have moved
 * some, as end_away() will find. */
static void look_at_destination(const struct hook_call *call, const struct moving *m, bool moved)
{
	const uint64_t *a = call->arguments;

	if (!(a[3] & REMAP_FIXED) || !is_range(a[4], a[2]) || a[4] % PAGE_BYTES)
		return;
	if (m->distance && (moved || some_has_gone(m)))
		take(call, a[4], a[2], 0);
	else if (!moved)
		take_if_gone(call, a[4], mapping_end(a[4], a[2]));
}

/* … and what the old range has more than the new one. */
static void look_after_failure(const struct hook_call *call)
{
	const uint64_t *a = call->arguments;

	if (!(a[3] & REMAP_FIXED))
		return;
	if (is_range(a[0], a[1]) && a[0] % PAGE_BYTES == 0 && !(a[3] & REMAP_DONTUNMAP))
		take_if_gone(call, mapping_end(a[0], a[2]), mapping_end(a[0], a[1]));
}

uint64_t map_hook_remap(struct hook_call *call)
{
	const uint64_t *a = call->arguments;
	uint32_t rate = sampler_charge(call, a[2]);
	struct mapping mapping;
	struct moving moving;
	uint64_t result;
	bool followed;

	regions_refresh();
	followed = mappings_find(a[0], a[0] + 1, &mapping);
	call->file = followed ? mapping.file : was_file(a[0]); /* as it was made */
	move_begin(call, &moving, followed);
	if (moving.known)
		call->file |= is_file(&moving.entry);
	result = hook_original(call);
	look_at_destination(call, &moving, result != MAP_FAILURE);
	move_end(call, &moving, result != MAP_FAILURE);
	if (result == MAP_FAILURE)
		look_after_failure(call);
	else if (!shrinks_in_place(&moving, a) && !(moving.distance && moving.away.count))
		keep(call, result, a[2], rate, a[3] & REMAP_FIXED);
	return result;
}
