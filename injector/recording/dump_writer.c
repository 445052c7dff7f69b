/* SPDX-License-Identifier: MIT */
#include "recording/dump_writer.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "recording/dump_writer_internal.h"
#include "recording/session_share.h"
#include "process/memory_room.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* linux/memfd.h, since 6.3 */
#endif

/*
 * Sizes at the start of a session; each region after the first ones is twice as large as the one before, up to a limit.
 * The hash tables start with several levels, because a bucket that is full in one level must find room in the next: at
 * half load about one in twenty is. A small rate fills everything at the rate of the allocations, while memattach may
 * have to wait for a processor: there more is made ahead.
 */
#define LEVELS 3u /* entries, 2 entries, 4 entries … */
#define DENSE_RATE 8192u
#define MODULES_BYTES (256u << 10)
#define THREADS_BYTES (64u << 10)
#define NOTES_BYTES (64u << 10)
#define RATES_BYTES (64u << 10)
#define PATHS_BYTES (16u << 10) /* if there are any; of what blocks are, too */
#define JAVA_BYTES (256u << 10) /* the same */
#define JAVA_BYTES_MAX (4u << 20)

/* The first of each kind. */
static const struct first_sizes {
	uint64_t above_rate;
	uint64_t live_entries, stack_entries, stacks_bytes, history_blocks;
} first_sizes[] = {
	{ 64u << 10, 2048, 2048, 1u << 20, 256 },
	{ DENSE_RATE, 8192, 4096, 4u << 20, 1024 },
	{ 0, 65536, 16384, 16u << 20, 4096 },
};

/* With hundreds of sessions most are of processes that allocate little. */
static const struct first_sizes shared_sizes = { 64u << 10, 512, 512, 256u << 10, 64 };

/*
 * Memory for [used, used + bytes), unless it is there already. Memory under a limit is not taken to the last byte: the
 * kernel would make room by ending a process, which may be the target.
 */
static int allocate(struct dump_writer *w, uint64_t bytes, struct err *e)
{
	uint64_t end = w->used + bytes;

	if (end > w->max_bytes)
		return dump_writer_full(e);
	int rc = end > w->allocated ? memory_room_check(end - w->allocated, e) : 0;
	if (rc < 0 || end <= w->allocated)
		return rc;
	/* As where memory is short: others may end, or give up dumps. */
	if (w->share && !session_share_take(w->share, end - w->allocated, w->own->region_count == 0))
		return err_set(e, ENOMEM, "the dumps of all processes have reached their limit (--max-size)");
	if (fallocate(w->fd, 0, (off_t)w->allocated, (off_t)(end - w->allocated)) < 0)
		return err_sys(e, "cannot make room for the dump");
	w->allocated = end;
	return 0;
}

static bool has_arena(uint32_t kind)
{
	return kind == DUMP_REGION_STACKS || kind == DUMP_REGION_MODULES || kind == DUMP_REGION_THREADS ||
	       kind == DUMP_REGION_NOTES || kind == DUMP_REGION_RATES || kind == DUMP_REGION_PATHS ||
	       kind == DUMP_REGION_JAVA || kind == DUMP_REGION_MEMORY || kind == DUMP_REGION_BLOCKS ||
	       kind == DUMP_REGION_USAGE;
}

int dump_writer_add_region(struct dump_writer *w, uint32_t kind, uint64_t bytes, uint64_t entries, struct err *e)
{
	struct dump_header *own = w->own;
	uint32_t count = own->region_count, serial = 0;

	bytes = dump_writer_align(bytes, DUMP_REGION_ALIGN);
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
	/* Acquired by a child that copies (dump_copy.c). */
	atomic_store_explicit(dump_writer_u32(&own->region_count), count + 1, memory_order_release);
	/* Acquired by the payload (regions.c) and by readers. */
	atomic_store_explicit(dump_writer_u32(&w->shared->region_count), count + 1, memory_order_release);
	return 0;
}

/* The wanted number, halved until that many pieces fit into a part of the dump. */
static uint64_t fitting(uint64_t wanted, uint64_t piece_bytes, uint64_t part_bytes)
{
	while (wanted > DUMP_BUCKET && wanted * piece_bytes > part_bytes)
		wanted /= 2;
	return wanted;
}

struct planned_region {
	uint32_t kind;
	uint64_t bytes, entries;
};

static int add_regions(struct dump_writer *w, const struct planned_region *regions, unsigned count, struct err *e)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += dump_writer_align(regions[i].bytes, DUMP_REGION_ALIGN);
	int rc = allocate(w, bytes, e);
	for (unsigned i = 0; i < count && rc == 0; i++)
		rc = dump_writer_add_region(w, regions[i].kind, regions[i].bytes, regions[i].entries, e);
	return rc;
}

static int add_first_regions(struct dump_writer *w, struct err *e)
{
	uint64_t part = w->max_bytes / 8, all_levels = (1u << LEVELS) - 1;
	const struct first_sizes *f = first_sizes;

	while (w->own->first_rate_bytes <= f->above_rate)
		f++;
	if (w->share && f == first_sizes)
		f = &shared_sizes;
	uint64_t live = fitting(f->live_entries, all_levels * DUMP_LIVE_ENTRY_BYTES, part);
	uint64_t index = fitting(f->stack_entries, all_levels * DUMP_INDEX_ENTRY_BYTES, part / 8);
	uint64_t history = fitting(f->history_blocks, DUMP_HISTORY_BLOCK_BYTES, part);
	struct planned_region first[2 * LEVELS + 6] = {
		[2 * LEVELS] = { DUMP_REGION_STACKS, fitting(f->stacks_bytes, 1, part), 0 },
		{ DUMP_REGION_HISTORY, history * DUMP_HISTORY_BLOCK_BYTES, history },
		{ DUMP_REGION_MODULES, MODULES_BYTES, 0 },
		{ DUMP_REGION_THREADS, THREADS_BYTES, 0 },
		{ DUMP_REGION_NOTES, NOTES_BYTES, 0 },
		{ DUMP_REGION_RATES, RATES_BYTES, 0 },
	};

	for (unsigned i = 0; i < LEVELS; i++) {
		uint64_t stacks = index << i;
		first[i] = (struct planned_region){ DUMP_REGION_LIVE, DUMP_LIVE_BYTES(live << i), live << i };
		first[LEVELS + i] =
			(struct planned_region){ DUMP_REGION_STACK_INDEX, stacks * DUMP_INDEX_ENTRY_BYTES, stacks };
	}
	return add_regions(w, first, sizeof first / sizeof first[0], e);
}

/* Of another arena of a kind that is full; all kinds have a first one but these. */
static uint64_t next_arena_bytes(uint32_t kind, uint64_t last_bytes)
{
	const bool grows = kind == DUMP_REGION_JAVA || kind == DUMP_REGION_BLOCKS || kind == DUMP_REGION_USAGE;

	if (grows && last_bytes && last_bytes < JAVA_BYTES_MAX)
		return 2 * last_bytes;
	return last_bytes ? last_bytes : kind == DUMP_REGION_JAVA ? JAVA_BYTES : PATHS_BYTES;
}

int dump_writer_take(struct dump_writer *w, uint32_t kind, uint64_t bytes, void **record, uint64_t *offset,
                     struct err *e)
{
	struct writer_arena *arena = &w->arenas[kind];

	if (sizeof(struct dump_arena) + arena->used + bytes > arena->bytes) {
		uint64_t wanted = dump_writer_align(bytes + sizeof(struct dump_arena), DUMP_REGION_ALIGN);
		uint64_t usual = next_arena_bytes(kind, arena->bytes);
		int rc = dump_writer_add_region(w, kind, wanted > usual ? wanted : usual, 0, e);
		if (rc < 0)
			return rc;
	}
	*offset = arena->offset + sizeof(struct dump_arena) + arena->used;
	*record = dump_writer_at(w, *offset);
	arena->used += bytes;
	struct dump_arena *shown = dump_writer_at(w, arena->offset);
	atomic_store_explicit(dump_writer_u64(&shown->used), arena->used, memory_order_release);
	return 0;
}

/* The record with no frames, for samples whose stack has no room. It is found by header.unknown_stack, not through the
 * index. */
static int add_unknown_stack(struct dump_writer *w, struct err *e)
{
	struct dump_stack *stack;
	uint64_t offset;
	void *record;

	int rc = dump_writer_take(w, DUMP_REGION_STACKS, DUMP_STACK_BYTES(0u), &record, &offset, e);
	if (rc < 0)
		return rc;
	stack = record;
	stack->flags = DUMP_STACK_TRUNCATED;
	stack->hash = 1;
	w->own->unknown_stack = (uint32_t)(offset / DUMP_STACK_ALIGN);
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
	/* Who has it for reading only shall not open it for writing by /proc/self/fd. */
	if (fchmod(fd, 0600) < 0 || ftruncate(fd, (off_t)bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_sys(e, "cannot prepare the memory of the dump");
	return cleanup_steal_fd(&fd);
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
		return err_sys(e, "cannot map the memory of the dump (a smaller --max-size takes less)");
	w->shared = map;
	w->used = DUMP_HEADER_BYTES;
	return 0;
}

int dump_writer_create(struct dump_writer *w, const struct dump_writer_options *options, struct err *e)
{
	*w = (struct dump_writer){ .fd = -1,
		                   .max_bytes = options->max_bytes & ~(uint64_t)(DUMP_REGION_ALIGN - 1),
		                   .exact = options->rate_bytes == 1,
		                   .dense = options->rate_bytes <= DENSE_RATE,
		                   .share = options->share };
	struct dump_header *h = mmap(NULL, sizeof *h, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (h == MAP_FAILED)
		return err_sys(e, "no memory for the header of the dump");
	w->own = h;
	memcpy(h->magic, DUMP_MAGIC, sizeof h->magic);
	h->version = DUMP_VERSION;
	h->header_bytes = DUMP_HEADER_BYTES;
	h->features = w->exact && !(options->max_overhead > 0) ? DUMP_FEATURE_EXACT : 0;
	h->max_overhead_ppm = (uint32_t)(options->max_overhead * 1e6 + 0.5);
	h->max_bytes = w->max_bytes;
	h->rate_bytes = h->first_rate_bytes = options->rate_bytes;
	h->clock_start = h->clock_latest = clock_dump_now();
	gethostname(h->host, sizeof h->host - 1);
	int rc = map_memory(w, e);
	rc = rc ?: add_first_regions(w, e);
	rc = rc ?: add_unknown_stack(w, e);
	if (rc < 0) {
		dump_writer_close(w);
		return rc;
	}
	dump_writer_publish(w);
	return 0;
}

void dump_writer_publish(struct dump_writer *w)
{
	*w->shared = *w->own;
}

void dump_writer_close(struct dump_writer *w)
{
	if (w->shared)
		munmap(w->shared, w->max_bytes);
	if (w->own)
		munmap(w->own, sizeof *w->own);
	if (w->fd >= 0)
		close(w->fd);
	free(w->modules);
	free(w->thinnings);
	w->modules = NULL;
	w->thinnings = NULL;
	w->module_count = w->thinning_count = 0;
	w->shared = w->own = NULL;
	w->fd = -1;
}

void dump_writer_count(struct dump_writer *w, enum dump_counter counter, uint64_t n)
{
	/* The first row is for all; others may add to it at the same time. */
	atomic_fetch_add_explicit(dump_writer_u64(&w->shared->counters[0][counter]), n, memory_order_relaxed);
}

uint64_t dump_writer_counter(const struct dump_writer *w, enum dump_counter counter)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < DUMP_COUNTER_SHARDS; i++)
		sum += atomic_load_explicit(dump_writer_u64(&w->shared->counters[i][counter]), memory_order_relaxed);
	return sum;
}

struct dump_stack *dump_writer_stack(const struct dump_writer *w, uint32_t stack)
{
	const uint64_t offset = (uint64_t)stack * DUMP_STACK_ALIGN;

	for (uint32_t i = 0; i < w->own->region_count; i++) {
		const struct dump_region *r = &w->own->regions[i];
		if (r->kind == DUMP_REGION_STACKS && offset >= r->offset + sizeof(struct dump_arena) &&
		    offset <= r->offset + r->bytes - sizeof(struct dump_stack))
			return dump_writer_at(w, offset);
	}
	return NULL;
}

void dump_writer_unkept(struct dump_writer *w, const struct dump_live_record *sample)
{
	struct dump_stack *stack = dump_writer_stack(w, sample->stack);
	uint32_t *count = !stack ? NULL : sample->flags & DUMP_LIVE_PART ? &stack->unkept_parts : &stack->unkept;

	if (count)
		atomic_fetch_add_explicit(dump_writer_u32(count), 1, memory_order_relaxed);
}

/* As read_lease() of common/dump/dump_reader.c reads it. */
static void set_latest(struct dump_writer *w, struct dump_clock latest)
{
	struct dump_header *own = w->own, *shared = w->shared;

	own->clock_latest = latest;
	own->lease_sequence += 2;
	atomic_store_explicit(dump_writer_u32(&shared->lease_sequence), own->lease_sequence - 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	shared->clock_latest = latest;
	atomic_store_explicit(dump_writer_u32(&shared->lease_sequence), own->lease_sequence, memory_order_release);
}

void dump_writer_renew(struct dump_writer *w, uint64_t lease_ns)
{
	struct dump_header *own = w->own, *shared = w->shared;
	struct dump_clock now = clock_dump_now();
	uint64_t elapsed_ns = now.monotonic_ns - own->clock_start.monotonic_ns;

	/* The recorder has stopped by itself: the clock tells until when it recorded. */
	if (dump_writer_state(w) == DUMP_STATE_ABANDONED)
		return;
	double ticks_per_ns = elapsed_ns ? (double)(now.stamp - own->clock_start.stamp) / (double)elapsed_ns : 1;

	own->lease_realtime_ns = now.realtime_ns + lease_ns;
	own->lease_stamp = now.stamp + (uint64_t)((double)lease_ns * ticks_per_ns);
	set_latest(w, now);
	shared->lease_realtime_ns = own->lease_realtime_ns;
	/* Read by the payload without order: only its value matters. */
	atomic_store_explicit(dump_writer_u64(&shared->lease_stamp), own->lease_stamp, memory_order_relaxed);
}

uint64_t dump_writer_end_with_lease(struct dump_writer *w)
{
	const struct dump_header *own = w->own;
	const struct dump_clock *latest = &own->clock_latest;

	set_latest(w, (struct dump_clock){
			      .stamp = own->lease_stamp,
			      .monotonic_ns = latest->monotonic_ns + (own->lease_realtime_ns - latest->realtime_ns),
			      .realtime_ns = own->lease_realtime_ns,
		      });
	return own->clock_latest.monotonic_ns - own->clock_start.monotonic_ns;
}

void dump_writer_end_lease(struct dump_writer *w)
{
	const uint64_t long_ago = 1; /* 0 would mean that there is none */

	w->own->lease_stamp = long_ago;
	atomic_store_explicit(dump_writer_u64(&w->shared->lease_stamp), long_ago, memory_order_relaxed);
}

void dump_writer_set_state(struct dump_writer *w, enum dump_state state, int detail)
{
	struct dump_header *own = w->own, *shared = w->shared;

	if (state == DUMP_STATE_RUNNING)
		own->clock_start = own->clock_latest = shared->clock_start = shared->clock_latest = clock_dump_now();
	own->state = state;
	own->end_detail = shared->end_detail = detail;
	atomic_store_explicit(dump_writer_u32(&shared->state), state, memory_order_release);
}

enum dump_state dump_writer_state(const struct dump_writer *w)
{
	uint32_t said = atomic_load_explicit(dump_writer_u32(&w->shared->state), memory_order_acquire);

	return said == DUMP_STATE_ABANDONED ? DUMP_STATE_ABANDONED : (enum dump_state)w->own->state;
}

void dump_writer_private(struct dump_writer *w, uint64_t bytes)
{
	w->own->private_latest_bytes = w->shared->private_latest_bytes = bytes;
}

void dump_writer_end_resident(struct dump_writer *w, uint64_t shared_bytes, uint64_t files_bytes)
{
	w->own->shared_end_bytes = w->shared->shared_end_bytes = shared_bytes;
	w->own->files_end_bytes = w->shared->files_end_bytes = files_bytes;
}

void dump_writer_cost(struct dump_writer *w, uint64_t cpu_ns, uint64_t cost_ns)
{
	w->own->cpu_ns = w->shared->cpu_ns = cpu_ns;
	w->own->cost_ns = w->shared->cost_ns = cost_ns;
}
