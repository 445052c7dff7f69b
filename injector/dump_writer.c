/* SPDX-License-Identifier: MIT */
#include "dump_writer.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "grow.h"
#include "tracee.h"

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

/* Room on the disk for [used, used + bytes). File systems without fallocate get zeros written. */
static int allocate(struct dump_writer *w, uint64_t bytes, struct err *e)
{
	static const char zeros[1 << 16];

	if (w->used + bytes > w->max_bytes)
		return full(e);
	if (fallocate(w->fd, 0, (off_t)w->used, (off_t)bytes) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return err_sys(e, "cannot make room for the dump %s", w->path);
	for (uint64_t done = 0; done < bytes;) {
		size_t part = bytes - done < sizeof zeros ? bytes - done : sizeof zeros;
		ssize_t n = pwrite(w->fd, zeros, part, (off_t)(w->used + done));
		if (n <= 0)
			return err_sys(e, "cannot make room for the dump %s", w->path);
		done += (uint64_t)n;
	}
	return 0;
}

static void *at(const struct dump_writer *w, uint64_t offset)
{
	return (char *)w->header + offset;
}

static int add_region(struct dump_writer *w, uint32_t kind, uint64_t bytes, uint64_t entries, struct err *e)
{
	struct dump_header *h = w->header;
	uint32_t count = h->region_count, serial = 0;

	bytes = align_up(bytes, DUMP_REGION_ALIGN);
	if (count == DUMP_REGION_MAX)
		return err_set(e, ENOSPC, "the dump has as many regions as it can have");
	int rc = allocate(w, bytes, e);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < count; i++)
		serial += h->regions[i].kind == kind;
	h->regions[count] = (struct dump_region){ kind, serial, w->used, bytes, entries };
	w->used += bytes;
	/* Acquired by the payload (regions.c) and by readers. */
	atomic_store_explicit(atomic32(&h->region_count), count + 1, memory_order_release);
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

	while (w->header->first_rate_bytes <= f->above_rate)
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
	struct dump_header *h = w->header;
	const struct dump_region *last = NULL;

	for (uint32_t i = 0; i < h->region_count; i++)
		if (h->regions[i].kind == kind)
			last = &h->regions[i];
	struct dump_arena *arena = at(w, last->offset);
	if (sizeof *arena + arena->used + bytes > last->bytes) {
		uint64_t wanted = align_up(bytes + sizeof *arena, DUMP_REGION_ALIGN);
		int rc = add_region(w, kind, wanted > last->bytes ? wanted : last->bytes, 0, e);
		if (rc < 0)
			return rc;
		last = &h->regions[h->region_count - 1];
		arena = at(w, last->offset);
	}
	*offset = last->offset + sizeof *arena + arena->used;
	*record = at(w, *offset);
	atomic_store_explicit(atomic64(&arena->used), arena->used + bytes, memory_order_release);
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
	w->header->unknown_stack = (uint32_t)(offset / DUMP_STACK_ALIGN);
	return 0;
}

int dump_writer_create(struct dump_writer *w, const struct dump_writer_options *options, struct err *e)
{
	*w = (struct dump_writer){ .fd = -1, .max_bytes = options->max_bytes & ~(uint64_t)(DUMP_REGION_ALIGN - 1),
				   .exact = options->rate_bytes == 1, .dense = options->rate_bytes <= DENSE_RATE };
	if ((size_t)snprintf(w->path, sizeof w->path, "%s", options->path) >= sizeof w->path)
		return err_set(e, ENAMETOOLONG, "the name of the dump is too long");
	w->fd = open(w->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (w->fd < 0) {
		if (errno == EEXIST)
			return err_set(e, EEXIST, "%s exists; memattach never writes over a file, choose another name with -o", w->path);
		return err_sys(e, "cannot create the dump %s", w->path);
	}
	int rc = allocate(w, DUMP_HEADER_BYTES, e);
	if (rc == 0) {
		void *map = mmap(NULL, w->max_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, w->fd, 0);
		if (map == MAP_FAILED)
			rc = err_sys(e, "cannot map the dump %s", w->path);
		else
			w->header = map;
	}
	if (rc < 0) {
		dump_writer_discard(w);
		return rc;
	}
	w->used = DUMP_HEADER_BYTES;
	struct dump_header *h = w->header;
	h->version = DUMP_VERSION;
	h->header_bytes = DUMP_HEADER_BYTES;
	h->features = w->exact && !(options->max_overhead > 0) ? DUMP_FEATURE_EXACT : 0;
	h->max_overhead_ppm = (uint32_t)(options->max_overhead * 1e6 + 0.5);
	h->max_bytes = w->max_bytes;
	h->rate_bytes = h->first_rate_bytes = options->rate_bytes;
	h->clock_start = h->clock_latest = dump_clock_now();
	gethostname(h->host, sizeof h->host - 1);
	rc = add_first_regions(w, e);
	if (rc == 0)
		rc = add_unknown_stack(w, e);
	if (rc < 0) {
		dump_writer_discard(w);
		return rc;
	}
	memcpy(h->magic, DUMP_MAGIC, sizeof h->magic);
	return 0;
}

void dump_writer_close(struct dump_writer *w)
{
	if (w->header)
		munmap(w->header, w->max_bytes);
	if (w->fd >= 0)
		close(w->fd);
	free(w->thinnings);
	w->thinnings = NULL;
	w->thinning_count = 0;
	w->header = NULL;
	w->fd = -1;
}

void dump_writer_discard(struct dump_writer *w)
{
	if (w->fd >= 0)
		unlink(w->path);
	dump_writer_close(w);
}

void dump_writer_count(struct dump_writer *w, enum dump_counter counter, uint64_t n)
{
	/* The first row is for all; others may add to it at the same time. */
	atomic_fetch_add_explicit(atomic64(&w->header->counters[0][counter]), n, memory_order_relaxed);
}

uint64_t dump_writer_counter(const struct dump_writer *w, enum dump_counter counter)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < DUMP_COUNTER_SHARDS; i++)
		sum += atomic_load_explicit(atomic64(&w->header->counters[i][counter]), memory_order_relaxed);
	return sum;
}

/* What a kind has: its regions' entries, and the youngest region. */
static uint64_t capacity_of(const struct dump_writer *w, uint32_t kind, const struct dump_region **last)
{
	uint64_t entries = 0;

	for (uint32_t i = 0; i < w->header->region_count; i++)
		if (w->header->regions[i].kind == kind) {
			entries += w->header->regions[i].entries;
			*last = &w->header->regions[i];
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

	for (uint32_t i = 0; i < w->header->region_count; i++) {
		const struct dump_region *r = &w->header->regions[i];
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

	for (uint32_t i = 0; i < w->header->region_count; i++) {
		const struct dump_region *r = &w->header->regions[i];
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

/* Grown well ahead: what is left is as much as half of the youngest arena. */
static int grow_arenas(struct dump_writer *w, struct err *e)
{
	const struct dump_region *last = NULL;

	capacity_of(w, DUMP_REGION_STACKS, &last);
	struct dump_arena *arena = at(w, last->offset);
	if (atomic_load_explicit(atomic64(&arena->used), memory_order_relaxed) <= last->bytes / 2)
		return 0;
	return add_arena(w, last->bytes * 2 < STACKS_BYTES_MAX ? last->bytes * 2 : STACKS_BYTES_MAX, e);
}

/* By the load of the live table, with an upper bound for the number of stacks. */
static int grow_index(struct dump_writer *w, struct err *e)
{
	const struct dump_region *last = NULL;
	uint64_t capacity = capacity_of(w, DUMP_REGION_STACK_INDEX, &last), used = 0;

	for (uint32_t i = 0; i < w->header->region_count; i++) {
		const struct dump_region *r = &w->header->regions[i];
		if (r->kind != DUMP_REGION_STACKS)
			continue;
		uint64_t taken = ((struct dump_arena *)at(w, r->offset))->used;
		used += taken < r->bytes ? taken : r->bytes;
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

	if (atomic_load_explicit(atomic64(&w->header->history_next), memory_order_relaxed) <= blocks / 2 ||
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
	struct dump_header *h = w->header;
	struct dump_clock now = dump_clock_now();
	uint64_t elapsed_ns = now.monotonic_ns - h->clock_start.monotonic_ns;

	/* The recorder has stopped by itself: the clock tells until when it recorded. */
	if (dump_writer_state(w) == DUMP_STATE_ABANDONED)
		return;
	double ticks_per_ns = elapsed_ns ? (double)(now.stamp - h->clock_start.stamp) / (double)elapsed_ns : 1;

	uint32_t sequence = h->lease_sequence;
	atomic_store_explicit(atomic32(&h->lease_sequence), sequence + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	h->clock_latest = now;
	atomic_store_explicit(atomic32(&h->lease_sequence), sequence + 2, memory_order_release);
	h->lease_realtime_ns = now.realtime_ns + lease_ns;
	/* Read by the payload without order: only its value matters. */
	atomic_store_explicit(atomic64(&h->lease_stamp), now.stamp + (uint64_t)((double)lease_ns * ticks_per_ns),
			      memory_order_relaxed);
}

void dump_writer_end_lease(struct dump_writer *w)
{
	const uint64_t long_ago = 1; /* 0 would mean that there is none */

	atomic_store_explicit(atomic64(&w->header->lease_stamp), long_ago, memory_order_relaxed);
}

void dump_writer_set_state(struct dump_writer *w, enum dump_state state, int detail)
{
	struct dump_header *h = w->header;

	if (state == DUMP_STATE_RUNNING)
		h->clock_start = h->clock_latest = dump_clock_now();
	h->end_detail = detail;
	atomic_store_explicit(atomic32(&h->state), state, memory_order_release);
}

enum dump_state dump_writer_state(const struct dump_writer *w)
{
	return (enum dump_state)atomic_load_explicit(atomic32(&w->header->state), memory_order_acquire);
}

/* A record of text behind a fixed part whose first word is its size, released last. */
static int add_record(struct dump_writer *w, uint32_t kind, const void *fixed, size_t fixed_bytes, const char *text,
		      struct err *e)
{
	uint64_t offset;
	void *record;
	size_t text_bytes = text ? strlen(text) + 1 : 0;
	uint64_t bytes = align_up(fixed_bytes + text_bytes, 16);

	int rc = arena_take(w, kind, bytes, &record, &offset, e);
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
	return add_record(w, DUMP_REGION_MODULES, &record, sizeof record, m->path, e);
}

void dump_writer_module_gone(struct dump_writer *w, uint32_t id)
{
	struct dump_header *h = w->header;

	for (uint32_t i = 0; i < h->region_count; i++) {
		if (h->regions[i].kind != DUMP_REGION_MODULES)
			continue;
		struct dump_arena *arena = at(w, h->regions[i].offset);
		for (uint64_t done = 0; done < arena->used;) {
			struct dump_module *m = (void *)((char *)(arena + 1) + done);
			if (m->id == id && !m->unloaded_stamp)
				atomic_store_explicit(atomic64(&m->unloaded_stamp), dump_clock_stamp(), memory_order_relaxed);
			done += m->bytes;
		}
	}
}

int dump_writer_thread(struct dump_writer *w, uint32_t tid, const char *name, struct err *e)
{
	struct dump_thread record = { .tid = tid };

	snprintf(record.name, sizeof record.name, "%s", name);
	return add_record(w, DUMP_REGION_THREADS, &record, sizeof record, NULL, e);
}

int dump_writer_note(struct dump_writer *w, enum dump_note_kind kind, const char *text, struct err *e)
{
	struct dump_note record = { .kind = kind };

	return add_record(w, DUMP_REGION_NOTES, &record, sizeof record, text, e);
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
	struct dump_header *h = w->header;

	int rc = change->thinned_bytes ? keep_thinning(w, change, e) : 0;
	/* Recorded first: a reader never meets a sample with a rate that it cannot know of. */
	if (rc == 0)
		rc = add_record(w, DUMP_REGION_RATES, change, sizeof *change, NULL, e);
	if (change->new_bytes > 1)
		h->features &= ~DUMP_FEATURE_EXACT;
	atomic_store_explicit(atomic64(&h->rate_bytes), change->new_bytes, memory_order_release);
	if (rc == 0 && change->thinned_bytes) {
		w->thinning_count++;
		/* Acquired by readers at their end: what is removed after this, they know of or read again. */
		atomic_store_explicit(atomic32(&h->thinnings), (uint32_t)w->thinning_count, memory_order_seq_cst);
	}
	return rc;
}

uint64_t dump_writer_rate_changes_left(const struct dump_writer *w)
{
	const struct dump_region *last = NULL;

	capacity_of(w, DUMP_REGION_RATES, &last);
	const struct dump_arena *arena = at(w, last->offset);
	uint64_t used = sizeof *arena + arena->used;
	return used < last->bytes ? (last->bytes - used) / sizeof(struct dump_rate_change) : 0;
}
