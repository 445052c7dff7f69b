/* SPDX-License-Identifier: MIT */
#include "dump_writer.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "cleanup.h"
#include "grow.h"
#include "memory_room.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* linux/memfd.h, since 6.3 */
#endif

/*
 * Sizes at the start of a session; each region after the first ones is twice as large as the one before, up to a limit. The hash tables
 * start with several levels, because a bucket that is full in one level must find room in the next: at half load about one in twenty is.
 * A small rate fills everything at the rate of the allocations, while memattach may have to wait for a processor: there more is made ahead.
 */
#define LEVELS 3u /* entries, 2 entries, 4 entries … */
#define STACKS_BYTES_LEAST (64ull << 10) /* where what is wanted has no room */
#define DENSE_RATE 8192u
#define MODULES_BYTES (256u << 10)
#define THREADS_BYTES (64u << 10)
#define NOTES_BYTES (64u << 10)
#define RATES_BYTES (64u << 10)
#define STACKS_BYTES_MAX (64ull << 20)
#define HISTORY_BYTES_MAX (64ull << 20) /* all history regions together; older records are dropped then */
#define STACKS_PART 8u                   /* of the file, at least, is for stacks */
#define STACK_BYTES_FEW 128u            /* of one stack record with a few frames */

/* The first of each kind. */
static const struct first_sizes {
	uint64_t above_rate;
	uint64_t live_entries, stack_entries, stacks_bytes, history_blocks;
} first_sizes[] = {
	{ 64u << 10, 2048, 2048, 1u << 20, 256 },
	{ DENSE_RATE, 8192, 4096, 4u << 20, 1024 },
	{ 0, 65536, 16384, 16u << 20, 4096 },
};

uint64_t dump_clock_stamp(void)
{
	return __rdtsc();
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The three clocks at one instant: of several tries the one that took least time. */
struct dump_clock dump_clock_now(void)
{
	struct dump_clock best = { 0 };
	uint64_t best_ticks = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t before = dump_clock_stamp();
		uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);
		uint64_t after = dump_clock_stamp();
		if (after - before < best_ticks) {
			best_ticks = after - before;
			best.stamp = before + (after - before) / 2;
			best.monotonic_ns = monotonic;
			best.realtime_ns = clock_ns(CLOCK_REALTIME);
		}
	}
	return best;
}

static _Atomic uint64_t *atomic64(uint64_t *word)
{
	return (_Atomic uint64_t *)word;
}

static _Atomic uint32_t *atomic32(uint32_t *word)
{
	return (_Atomic uint32_t *)word;
}

static uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static int full(struct err *e)
{
	return err_set(e, ENOSPC, "the dump has reached its size limit (--max-size)");
}

/*
 * Memory for [used, used + bytes). Memory under a limit is not taken to the last byte: the kernel would make room by ending a process, which may
 * be the target.
 */
static int allocate(struct dump_writer *w, uint64_t bytes, struct err *e)
{
	if (w->used + bytes > w->max_bytes)
		return full(e);
	int rc = memory_room_check(bytes, e);
	if (rc < 0)
		return rc;
	if (fallocate(w->fd, 0, (off_t)w->used, (off_t)bytes) < 0)
		return err_sys(e, "cannot make room for the dump");
	return 0;
}

static void *at(const struct dump_writer *w, uint64_t offset)
{
	return (char *)w->shared + offset;
}

static bool has_arena(uint32_t kind)
{
	return kind == DUMP_REGION_STACKS || kind == DUMP_REGION_MODULES || kind == DUMP_REGION_THREADS || kind == DUMP_REGION_NOTES ||
	       kind == DUMP_REGION_RATES;
}

static int add_region(struct dump_writer *w, uint32_t kind, uint64_t bytes, uint64_t entries, struct err *e)
{
	struct dump_header *own = &w->own;
	uint32_t count = own->region_count, serial = 0;

	bytes = align_up(bytes, DUMP_REGION_ALIGN);
	if (count == DUMP_REGION_MAX)
		return err_set(e, ENOSPC, "the dump has as many regions as it can have");
	int rc = allocate(w, bytes, e);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < count; i++)
		serial += own->regions[i].kind == kind;
	own->regions[count] = (struct dump_region){ kind, serial, w->used, bytes, entries };
	w->shared->regions[count] = own->regions[count];
	if (has_arena(kind))
		w->arenas[kind] = (struct writer_arena){ w->used, bytes, 0 };
	w->used += bytes;
	own->region_count = count + 1;
	/* Acquired by the payload (regions.c) and by readers. */
	atomic_store_explicit(atomic32(&w->shared->region_count), count + 1, memory_order_release);
	return 0;
}

/* The wanted number, halved until that many pieces fit into a part of the dump. */
static uint64_t fitting(uint64_t wanted, uint64_t piece_bytes, uint64_t part_bytes)
{
	while (wanted > DUMP_BUCKET && wanted * piece_bytes > part_bytes)
		wanted /= 2;
	return wanted;
}

static int add_first_regions(struct dump_writer *w, struct err *e)
{
	uint64_t part = w->max_bytes / 8, all_levels = (1u << LEVELS) - 1;
	const struct first_sizes *f = first_sizes;

	while (w->own.first_rate_bytes <= f->above_rate)
		f++;
	uint64_t live = fitting(f->live_entries, all_levels * DUMP_LIVE_ENTRY_BYTES, part);
	uint64_t index = fitting(f->stack_entries, all_levels * DUMP_INDEX_ENTRY_BYTES, part / 8);
	uint64_t history = fitting(f->history_blocks, DUMP_HISTORY_BLOCK_BYTES, part);
	const struct {
		uint32_t kind;
		uint64_t bytes, entries;
	} first[] = {
		{ DUMP_REGION_STACKS, fitting(f->stacks_bytes, 1, part), 0 },
		{ DUMP_REGION_HISTORY, history * DUMP_HISTORY_BLOCK_BYTES, history },
		{ DUMP_REGION_MODULES, MODULES_BYTES, 0 },
		{ DUMP_REGION_THREADS, THREADS_BYTES, 0 },
		{ DUMP_REGION_NOTES, NOTES_BYTES, 0 },
		{ DUMP_REGION_RATES, RATES_BYTES, 0 },
	};
	int rc = 0;

	for (unsigned i = 0; i < LEVELS && rc == 0; i++)
		rc = add_region(w, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(live << i), live << i, e);
	for (unsigned i = 0; i < LEVELS && rc == 0; i++)
		rc = add_region(w, DUMP_REGION_STACK_INDEX, (index << i) * DUMP_INDEX_ENTRY_BYTES, index << i, e);
	for (unsigned i = 0; i < sizeof first / sizeof first[0] && rc == 0; i++)
		rc = add_region(w, first[i].kind, first[i].bytes, first[i].entries, e);
	return rc;
}

/* Hands out bytes of the youngest arena of a kind, adding one if it is full. */
static int arena_take(struct dump_writer *w, uint32_t kind, uint64_t bytes, void **record, uint64_t *offset, struct err *e)
{
	struct writer_arena *arena = &w->arenas[kind];

	if (sizeof(struct dump_arena) + arena->used + bytes > arena->bytes) {
		uint64_t wanted = align_up(bytes + sizeof(struct dump_arena), DUMP_REGION_ALIGN);
		int rc = add_region(w, kind, wanted > arena->bytes ? wanted : arena->bytes, 0, e);
		if (rc < 0)
			return rc;
	}
	*offset = arena->offset + sizeof(struct dump_arena) + arena->used;
	*record = at(w, *offset);
	arena->used += bytes;
	struct dump_arena *shown = at(w, arena->offset);
	atomic_store_explicit(atomic64(&shown->used), arena->used, memory_order_release);
	return 0;
}

/* The record with no frames, for samples whose stack has no room. It is found by header.unknown_stack, not through the index. */
static int add_unknown_stack(struct dump_writer *w, struct err *e)
{
	struct dump_stack *stack;
	uint64_t offset;
	void *record;

	int rc = arena_take(w, DUMP_REGION_STACKS, DUMP_STACK_BYTES(0u), &record, &offset, e);
	if (rc < 0)
		return rc;
	stack = record;
	stack->flags = DUMP_STACK_TRUNCATED;
	stack->hash = 1;
	w->own.unknown_stack = (uint32_t)(offset / DUMP_STACK_ALIGN);
	return 0;
}

/* Noexec where the kernel knows it (6.3), which some hosts demand (vm.memfd_noexec). */
static int sealed_memory(uint64_t bytes, struct err *e)
{
	AUTO_CLOSE int fd = memfd_create(DUMP_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(DUMP_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_sys(e, "cannot create the memory of the dump");
	if (ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_sys(e, "cannot prepare the memory of the dump");
	return steal_fd(&fd);
}

static int map_memory(struct dump_writer *w, struct err *e)
{
	w->fd = sealed_memory(w->max_bytes, e);
	if (w->fd < 0)
		return w->fd;
	int rc = allocate(w, DUMP_HEADER_BYTES, e);
	if (rc < 0)
		return rc;
	void *map = mmap(NULL, w->max_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, w->fd, 0);
	if (map == MAP_FAILED)
		return err_sys(e, "cannot map the memory of the dump");
	w->shared = map;
	w->used = DUMP_HEADER_BYTES;
	return 0;
}

int dump_writer_create(struct dump_writer *w, const struct dump_writer_options *options, struct err *e)
{
	*w = (struct dump_writer){ .fd = -1, .max_bytes = options->max_bytes & ~(uint64_t)(DUMP_REGION_ALIGN - 1),
				   .exact = options->rate_bytes == 1, .dense = options->rate_bytes <= DENSE_RATE };
	struct dump_header *h = &w->own;

	memcpy(h->magic, DUMP_MAGIC, sizeof h->magic);
	h->version = DUMP_VERSION;
	h->header_bytes = DUMP_HEADER_BYTES;
	h->features = w->exact && !(options->max_overhead > 0) ? DUMP_FEATURE_EXACT : 0;
	h->max_overhead_ppm = (uint32_t)(options->max_overhead * 1e6 + 0.5);
	h->max_bytes = w->max_bytes;
	h->rate_bytes = h->first_rate_bytes = options->rate_bytes;
	h->clock_start = h->clock_latest = dump_clock_now();
	gethostname(h->host, sizeof h->host - 1);
	int rc = map_memory(w, e);
	if (rc == 0)
		rc = add_first_regions(w, e);
	if (rc == 0)
		rc = add_unknown_stack(w, e);
	if (rc < 0) {
		dump_writer_close(w);
		return rc;
	}
	dump_writer_publish(w);
	return 0;
}

void dump_writer_publish(struct dump_writer *w)
{
	*w->shared = w->own;
}

void dump_writer_close(struct dump_writer *w)
{
	if (w->shared)
		munmap(w->shared, w->max_bytes);
	if (w->fd >= 0)
		close(w->fd);
	free(w->modules);
	free(w->thinnings);
	w->modules = NULL;
	w->thinnings = NULL;
	w->module_count = w->thinning_count = 0;
	w->shared = NULL;
	w->fd = -1;
}

void dump_writer_count(struct dump_writer *w, enum dump_counter counter, uint64_t n)
{
	/* The first row is for all; others may add to it at the same time. */
	atomic_fetch_add_explicit(atomic64(&w->shared->counters[0][counter]), n, memory_order_relaxed);
}

uint64_t dump_writer_counter(const struct dump_writer *w, enum dump_counter counter)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < DUMP_COUNTER_SHARDS; i++)
		sum += atomic_load_explicit(atomic64(&w->shared->counters[i][counter]), memory_order_relaxed);
	return sum;
}

/* What a kind has: its regions' entries, and the youngest region. */
static uint64_t capacity_of(const struct dump_writer *w, uint32_t kind, const struct dump_region **last)
{
	uint64_t entries = 0;

	for (uint32_t i = 0; i < w->own.region_count; i++)
		if (w->own.regions[i].kind == kind) {
			entries += w->own.regions[i].entries;
			*last = &w->own.regions[i];
		}
	return entries;
}

uint64_t dump_writer_live(const struct dump_writer *w)
{
	uint64_t taken = dump_writer_counter(w, DUMP_COUNTER_samples_taken);
	uint64_t gone = dump_writer_counter(w, DUMP_COUNTER_samples_freed) + dump_writer_counter(w, DUMP_COUNTER_frees_missed) +
			dump_writer_counter(w, DUMP_COUNTER_lost_live_full) + dump_writer_counter(w, DUMP_COUNTER_samples_thinned);

	return taken > gone ? taken - gone : 0;
}

uint64_t dump_writer_live_capacity(const struct dump_writer *w)
{
	const struct dump_region *last;

	return capacity_of(w, DUMP_REGION_LIVE, &last);
}

void dump_writer_unkept(struct dump_writer *w, uint32_t stack)
{
	uint64_t offset = (uint64_t)stack * DUMP_STACK_ALIGN;

	for (uint32_t i = 0; i < w->own.region_count; i++) {
		const struct dump_region *r = &w->own.regions[i];
		if (r->kind != DUMP_REGION_STACKS || offset < r->offset + sizeof(struct dump_arena) ||
		    offset > r->offset + r->bytes - sizeof(struct dump_stack))
			continue;
		struct dump_stack *record = at(w, offset);
		atomic_fetch_add_explicit(atomic64(&record->unkept), 1, memory_order_relaxed);
		return;
	}
}

/* Live samples can be thinned, stacks cannot: so a part of the file is kept back for those. */
static uint64_t kept_back(const struct dump_writer *w)
{
	uint64_t part = w->max_bytes / STACKS_PART, bytes = 0;

	for (uint32_t i = 0; i < w->own.region_count; i++) {
		const struct dump_region *r = &w->own.regions[i];
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
		return full(e);
	return add_region(w, DUMP_REGION_LIVE, bytes, last->entries * 2, e);
}

/* An arena of so many bytes, or of half as many, and so on: the last ones are small. */
static int add_arena(struct dump_writer *w, uint64_t bytes, struct err *e)
{
	while (w->used + bytes > w->max_bytes && bytes > STACKS_BYTES_LEAST)
		bytes /= 2;
	return add_region(w, DUMP_REGION_STACKS, bytes, 0, e);
}

/* How much of an arena of stacks the payload has filled, as far as it can be believed. */
static uint64_t stacks_used(const struct dump_writer *w, const struct dump_region *r)
{
	struct dump_arena *arena = at(w, r->offset);
	uint64_t used = atomic_load_explicit(atomic64(&arena->used), memory_order_relaxed);

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

	for (uint32_t i = 0; i < w->own.region_count; i++) {
		const struct dump_region *r = &w->own.regions[i];
		if (r->kind != DUMP_REGION_STACKS)
			continue;
		used += stacks_used(w, r);
	}
	if (used / STACK_BYTES_FEW <= capacity / 4)
		return 0;
	return add_region(w, DUMP_REGION_STACK_INDEX, last->entries * 2 * DUMP_INDEX_ENTRY_BYTES, last->entries * 2, e);
}

static int grow_history(struct dump_writer *w, struct err *e)
{
	const struct dump_region *last = NULL;
	uint64_t blocks = capacity_of(w, DUMP_REGION_HISTORY, &last);
	uint64_t limit = w->max_bytes / 4 < HISTORY_BYTES_MAX ? w->max_bytes / 4 : HISTORY_BYTES_MAX;

	if (atomic_load_explicit(atomic64(&w->shared->history_next), memory_order_relaxed) <= blocks / 2 ||
	    (blocks + last->entries * 2) * DUMP_HISTORY_BLOCK_BYTES > limit)
		return 0;
	return add_region(w, DUMP_REGION_HISTORY, last->entries * 2 * DUMP_HISTORY_BLOCK_BYTES, last->entries * 2, e);
}

/* Once. */
static int try_to_grow(struct dump_writer *w, bool *is_full, int (*grow)(struct dump_writer *, struct err *), const char *what,
		       struct err *e)
{
	struct err why;

	if (*is_full || grow(w, &why) == 0)
		return 0;
	*is_full = true;
	return err_set(e, ENOSPC, "%s: %s", why.text, what);
}

int dump_writer_grow(struct dump_writer *w, struct err *e)
{
	int rc = try_to_grow(w, &w->live_full, grow_live,
			     "from now on live samples are thinned when their table is crowded", e);
	if (rc == 0)
		rc = try_to_grow(w, &w->stacks_full, grow_arenas,
				 "from now on a stack that is new may find no room, its samples then count as unknown stack", e);
	if (rc == 0)
		rc = try_to_grow(w, &w->index_full, grow_index,
				 "from now on a stack that is new may find no room in the index, its samples then count as unknown stack", e);
	if (rc == 0)
		rc = try_to_grow(w, &w->history_full, grow_history, "from now on the oldest of the history is dropped sooner", e);
	return rc;
}

void dump_writer_renew(struct dump_writer *w, uint64_t lease_ns)
{
	struct dump_header *own = &w->own, *shared = w->shared;
	struct dump_clock now = dump_clock_now();
	uint64_t elapsed_ns = now.monotonic_ns - own->clock_start.monotonic_ns;

	/* The recorder has stopped by itself: the clock tells until when it recorded. */
	if (dump_writer_state(w) == DUMP_STATE_ABANDONED)
		return;
	double ticks_per_ns = elapsed_ns ? (double)(now.stamp - own->clock_start.stamp) / (double)elapsed_ns : 1;

	own->clock_latest = now;
	own->lease_realtime_ns = now.realtime_ns + lease_ns;
	own->lease_stamp = now.stamp + (uint64_t)((double)lease_ns * ticks_per_ns);
	own->lease_sequence += 2;
	atomic_store_explicit(atomic32(&shared->lease_sequence), own->lease_sequence - 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	shared->clock_latest = now;
	atomic_store_explicit(atomic32(&shared->lease_sequence), own->lease_sequence, memory_order_release);
	shared->lease_realtime_ns = own->lease_realtime_ns;
	/* Read by the payload without order: only its value matters. */
	atomic_store_explicit(atomic64(&shared->lease_stamp), own->lease_stamp, memory_order_relaxed);
}

void dump_writer_end_lease(struct dump_writer *w)
{
	const uint64_t long_ago = 1; /* 0 would mean that there is none */

	w->own.lease_stamp = long_ago;
	atomic_store_explicit(atomic64(&w->shared->lease_stamp), long_ago, memory_order_relaxed);
}

void dump_writer_set_state(struct dump_writer *w, enum dump_state state, int detail)
{
	struct dump_header *own = &w->own, *shared = w->shared;

	if (state == DUMP_STATE_RUNNING)
		own->clock_start = own->clock_latest = shared->clock_start = shared->clock_latest = dump_clock_now();
	own->state = state;
	own->end_detail = shared->end_detail = detail;
	atomic_store_explicit(atomic32(&shared->state), state, memory_order_release);
}

enum dump_state dump_writer_state(const struct dump_writer *w)
{
	uint32_t said = atomic_load_explicit(atomic32(&w->shared->state), memory_order_acquire);

	return said == DUMP_STATE_ABANDONED ? DUMP_STATE_ABANDONED : (enum dump_state)w->own.state;
}

void dump_writer_private(struct dump_writer *w, uint64_t bytes)
{
	w->own.private_latest_bytes = w->shared->private_latest_bytes = bytes;
}

void dump_writer_cost(struct dump_writer *w, uint64_t cpu_ns, uint64_t cost_ns)
{
	w->own.cpu_ns = w->shared->cpu_ns = cpu_ns;
	w->own.cost_ns = w->shared->cost_ns = cost_ns;
}

/* A record of text behind a fixed part whose first word is its size, released last. */
static int add_record(struct dump_writer *w, uint32_t kind, const void *fixed, size_t fixed_bytes, const char *text, uint64_t *offset,
		      struct err *e)
{
	void *record;
	size_t text_bytes = text ? strlen(text) + 1 : 0;
	uint64_t bytes = align_up(fixed_bytes + text_bytes, 16);

	int rc = arena_take(w, kind, bytes, &record, offset, e);
	if (rc < 0)
		return rc;
	memcpy((char *)record + 4, (const char *)fixed + 4, fixed_bytes - 4);
	if (text)
		memcpy((char *)record + fixed_bytes, text, text_bytes);
	atomic_store_explicit(atomic32(record), (uint32_t)bytes, memory_order_release);
	return 0;
}

int dump_writer_module(struct dump_writer *w, const struct elf_module *m, uint32_t rows, uint32_t slots, uint32_t flags,
		       struct err *e)
{
	struct dump_module record = {
		.id = m->id,
		.start = m->start,
		.end = m->end,
		.bias = m->bias,
		.loaded_stamp = dump_clock_stamp(),
		.unwind_rows = rows,
		.slots = slots,
		.flags = flags | (m->is_main ? DUMP_MODULE_MAIN : 0) | (m->is_vdso ? DUMP_MODULE_VDSO : 0),
		.build_id_bytes = m->build_id_bytes < DUMP_BUILD_ID_MAX ? m->build_id_bytes : DUMP_BUILD_ID_MAX,
	};

	memcpy(record.build_id, m->build_id, record.build_id_bytes);
	if (!grow_list(w->modules, w->module_count))
		return err_set(e, ENOMEM, "out of memory");
	struct writer_module *module = &w->modules[w->module_count];
	int rc = add_record(w, DUMP_REGION_MODULES, &record, sizeof record, m->path, &module->offset, e);
	if (rc == 0) {
		module->id = m->id;
		w->module_count++;
	}
	return rc;
}

void dump_writer_module_gone(struct dump_writer *w, uint32_t id)
{
	for (size_t i = 0; i < w->module_count; i++) {
		if (w->modules[i].id != id)
			continue;
		struct dump_module *record = at(w, w->modules[i].offset);
		atomic_store_explicit(atomic64(&record->unloaded_stamp), dump_clock_stamp(), memory_order_relaxed);
		w->modules[i] = w->modules[--w->module_count];
		return;
	}
}

int dump_writer_thread(struct dump_writer *w, uint32_t tid, const char *name, struct err *e)
{
	struct dump_thread record = { .tid = tid };

	uint64_t offset;

	snprintf(record.name, sizeof record.name, "%s", name);
	return add_record(w, DUMP_REGION_THREADS, &record, sizeof record, NULL, &offset, e);
}

int dump_writer_note(struct dump_writer *w, enum dump_note_kind kind, const char *text, struct err *e)
{
	struct dump_note record = { .kind = kind };
	uint64_t offset;

	return add_record(w, DUMP_REGION_NOTES, &record, sizeof record, text, &offset, e);
}

static int keep_thinning(struct dump_writer *w, const struct dump_rate_change *change, struct err *e)
{
	if (!grow_list(w->thinnings, w->thinning_count))
		return err_set(e, ENOMEM, "out of memory");
	w->thinnings[w->thinning_count] = (struct thinning){ change->stamp, change->thinned_bytes };
	return 0;
}

int dump_writer_rate(struct dump_writer *w, const struct dump_rate_change *change, struct err *e)
{
	struct dump_header *own = &w->own;
	uint64_t offset;

	int rc = change->thinned_bytes ? keep_thinning(w, change, e) : 0;
	/* Recorded first: a reader never meets a sample with a rate that it cannot know of. */
	if (rc == 0)
		rc = add_record(w, DUMP_REGION_RATES, change, sizeof *change, NULL, &offset, e);
	if (change->new_bytes > 1)
		own->features &= ~DUMP_FEATURE_EXACT;
	own->rate_bytes = change->new_bytes;
	w->shared->features = own->features;
	atomic_store_explicit(atomic64(&w->shared->rate_bytes), own->rate_bytes, memory_order_release);
	if (rc == 0 && change->thinned_bytes) {
		own->thinnings = (uint32_t)++w->thinning_count;
		/* Acquired by readers at their end: what is removed after this, they know of or read again. */
		atomic_store_explicit(atomic32(&w->shared->thinnings), own->thinnings, memory_order_seq_cst);
	}
	return rc;
}

uint64_t dump_writer_rate_changes_left(const struct dump_writer *w)
{
	const struct writer_arena *arena = &w->arenas[DUMP_REGION_RATES];

	return (arena->bytes - sizeof(struct dump_arena) - arena->used) / sizeof(struct dump_rate_change);
}
