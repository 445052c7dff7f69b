/* SPDX-License-Identifier: MIT */
/* The slow path of mmap, munmap and mremap, see map_hook.h. */
#include "map_hook.h"

#include "hook.h"
#include "recorder.h"
#include "sampler.h"
#include "syscalls.h"
#include "tables/filter.h"
#include "tables/mappings.h"

#define MAP_FAILURE UINT64_MAX
/* From linux/mman.h. */
#define REMAP_MAYMOVE 1u
#define REMAP_FIXED 2u
#define REMAP_DONTUNMAP 4u

/* Pages that go. */
struct taking {
	const struct hook_call *call;
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
		__atomic_fetch_add(&stack->unkept, 1, __ATOMIC_RELAXED);
	return false;
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
	gone = part_of(&whole, was->start, whole.size - before - after);
	rest = part_of(&whole, end, after);
	if (gone.size)
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

static bool on_taken(void *arg, const struct mapping *was, uint64_t start, uint64_t end)
{
	struct taking *t = arg;
	struct live_entry entry;

	if (!live_table_take(was->start, &entry))
		return false;
	if (!t->open)
		recorder_open(&t->recorder, t->call, clock_stamp());
	t->open = true;
	if (!clock_lease_holds(t->recorder.stamp)) {
		live_table_put_back(&entry);
		return true;
	}
	if (start > was->start || end < was->end)
		return shrink(t, &entry, was, start, end);
	recorder_finish(&t->recorder, &entry, t->flags);
	return false;
}

/* Others the kernel refuses. */
static bool is_range(uint64_t start, uint64_t bytes)
{
	return mapping_end(start, bytes) > start && bytes <= mapping_end(start, bytes) - start;
}

static void take(const struct hook_call *call, uint64_t start, uint64_t bytes, uint16_t flags)
{
	struct taking t = { .call = call, .flags = flags };
	uint64_t stamp = clock_stamp();

	if (!is_range(start, bytes) || start % PAGE_BYTES)
		return;
	regions_refresh();
	mappings_take(start, mapping_end(start, bytes), on_taken, &t);
	if (!t.open)
		t.recorder.counters = counter_row(0, arch_thread_pointer());
	recorder_add_cycles(&t.recorder.counters, 1, clock_stamp() - stamp);
	if (t.open)
		recorder_leave(&t.recorder);
}

/* A mapping has come. */
static void keep(const struct hook_call *call, uint64_t start, uint64_t bytes, uint32_t rate, bool replaces)
{
	const struct mapping mapping = { start, mapping_end(start, bytes), call->file, rate != 0 };

	take(call, start, bytes, replaces ? 0 : DUMP_HISTORY_FREE_MISSED);
	if (call->inner)
		return;
	if (rate)
		hook_record_block(call, start, bytes, rate);
	if (rate || call->file)
		mappings_add(&mapping);
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

uint64_t map_hook_unmap(struct hook_call *call)
{
	const uint64_t *a = call->arguments;

	take(call, a[0], a[1], 0);
	/* What has no entry is known by its beginning. */
	return is_range(a[0], a[1]) && filter_maybe(a[0]) ? hook_release(call) : hook_original(call);
}

/* What mremap takes. */
struct moving {
	struct mapping mapping;
	struct live_entry entry;
	bool held;  /* the mapping has been removed, */
	bool taken; /* the record taken */
	bool stays; /* a part of it is taken out once it has grown */
};

/* Pages stay the caller's, or the call fails, which happens: there is no room to grow. */
static bool grows_in_place(const uint64_t *a)
{
	return !(a[3] & REMAP_MAYMOVE) && a[2] >= a[1];
}

static bool is_file(const struct live_entry *entry)
{
	const struct dump_stack *stack = regions_stack(entry->record->stack);

	return stack && stack->flags & DUMP_STACK_FILE;
}

static void move_begin(struct hook_call *call, struct moving *m)
{
	const uint64_t *a = call->arguments;
	uint64_t end = mapping_end(a[0], a[1]);
	bool known = mappings_find(a[0], &m->mapping);

	call->file = known && m->mapping.file;
	m->held = m->taken = m->stays = false;
	if (!a[1] || a[3] & REMAP_DONTUNMAP)
		return; /* what is there stays */
	m->held = known && m->mapping.start == a[0] && m->mapping.end == end && mappings_remove(&m->mapping);
	m->stays = !m->held && known && grows_in_place(a);
	if (m->stays)
		return;
	if (!m->held)
		take(call, a[0], a[1], 0);
	m->taken = live_table_take(a[0], &m->entry);
	if (m->taken)
		call->file |= is_file(&m->entry);
}

static void move_end(const struct hook_call *call, const struct moving *m, bool moved)
{
	struct recorder r;

	if (m->taken && moved) {
		recorder_open(&r, call, clock_stamp());
		recorder_finish(&r, &m->entry, 0);
		recorder_close(&r);
	} else if (m->taken) {
		live_table_put_back(&m->entry);
	}
	if (m->held && !moved)
		mappings_add(&m->mapping);
	if (m->stays && moved)
		take(call, call->arguments[0], call->arguments[1], 0);
}

uint64_t map_hook_remap(struct hook_call *call)
{
	const uint64_t *a = call->arguments;
	uint32_t rate = sampler_charge(call, a[2]);
	struct moving moving;
	uint64_t result;

	regions_refresh();
	move_begin(call, &moving);
	result = hook_original(call);
	move_end(call, &moving, result != MAP_FAILURE);
	if (result != MAP_FAILURE)
		keep(call, result, a[2], rate, a[3] & REMAP_FIXED);
	return result;
}
