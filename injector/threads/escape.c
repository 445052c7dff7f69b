/* SPDX-License-Identifier: MIT */
#include "escape.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/signal_frame.h"
#include "cleanup.h"
#include "control.h"
#include "live_thread.h"
#include "watchdog.h"

#define PAGE_BYTES 4096u
#define CHUNK_PAGES 256u
#define CHUNK_BYTES (CHUNK_PAGES * PAGE_BYTES)
#define PASSES 2
#define FRAMES_MAX 64u

/* An entry of /proc/PID/pagemap (the kernel's admin-guide/mm/pagemap.rst). */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_FILE (1ull << 61) /* or shared memory; not a private copy */

struct search {
	const struct escape *x;
	const struct target_memory *memory;
	int pagemap;
	uint8_t *buffer;                        /* CHUNK_BYTES */
	struct signal_frame frames[FRAMES_MAX]; /* that seem dead and hold the address of a trampoline, at */
	uint64_t held_at[FRAMES_MAX];
	size_t frame_count;
	uint64_t alive;     /* where the mapping that is searched begins to be alive */
	bool given_up;      /* memattach was asked twice to end */
	bool for_ways_back; /* wanted are addresses in the frames' stacks, not trampolines */
};

static uint64_t rotate_right(uint64_t value, unsigned bits)
{
	return value >> bits | value << (64 - bits);
}

/*
 * A program can only have copied the address of an entrance; a saved context, that of an instruction. Other words that
 * happen to lie in the pages are pointers to what was mapped there before.
 */
static bool is_trampoline(const struct escape *x, uint64_t word)
{
	return word >= x->start && word < x->end &&
	       trampoline_instruction_at((word - x->start) % TRAMPOLINE_CODE_BYTES);
}

/*
 * A stack pointer with which the handler of one of the frames could go on: which, or frame_count. The start of a stack
 * is what the program knows it by.
 */
static size_t way_back(const struct search *q, uint64_t word)
{
	size_t i = 0;

	while (i < q->frame_count && (word <= q->frames[i].stack_start || word > q->frames[i].address))
		i++;
	return i;
}

static bool is_way_back(const struct search *q, uint64_t word)
{
	return way_back(q, word) < q->frame_count;
}

static bool is_wanted(const struct search *q, uint64_t word)
{
	uint64_t plain = rotate_right(word, 17) ^ q->x->guard;

	if (q->for_ways_back)
		return is_way_back(q, word) || (q->x->has_guard && is_way_back(q, plain));
	return is_trampoline(q->x, word) || (q->x->has_guard && is_trampoline(q->x, plain));
}

/*
 * Is all of the mapping below the stack pointer that thread's stack? That of the first thread is, and one that a C
 * library made: a guard below it, the thread's control block above. Other stacks (of coroutines) may share their
 * mapping with anything.
 */
static bool is_stack_of(const struct maps *maps, const struct mapping *m, const struct escape_stack *stack)
{
	const struct mapping *below = m > maps->list ? m - 1 : NULL;

	if (strcmp(m->path, "[stack]") == 0)
		return true;
	return below && below->end == m->start && below->prot == 0 && stack->thread_pointer > stack->sp &&
	       stack->thread_pointer < m->end;
}

/* Where the mapping begins to be alive: a stack below its stack pointer is not. */
static uint64_t alive_from(const struct escape *x, const struct maps *maps, const struct mapping *m)
{
	const struct escape_stack *lowest = NULL;

	for (size_t i = 0; i < x->stack_count; i++)
		if (x->stacks[i].sp >= m->start && x->stacks[i].sp < m->end &&
		    (!lowest || x->stacks[i].sp < lowest->sp))
			lowest = &x->stacks[i];
	return lowest && is_stack_of(maps, m, lowest) ? lowest->sp : m->start;
}

/*
 * A signal that arrived in a trampoline has left its address in the frame that the kernel made. On an alternate stack
 * nothing overwrites it until the next signal. The frame is dead if no thread is on that stack at or below it, and,
 * which is looked for at the end, no stack pointer is kept anywhere with which a handler that was left by swapcontext
 * could go on.
 */
static bool is_in_dead_frame(struct search *q, uint64_t where)
{
	const struct escape *x = q->x;
	struct signal_frame frame;

	if (q->frame_count == FRAMES_MAX || !signal_frame_around(q->memory, where, &frame))
		return false;
	for (size_t i = 0; i < x->stack_count; i++)
		if (x->stacks[i].sp <= where && x->stacks[i].sp >= frame.stack_start - PAGE_BYTES)
			return false;
	q->frames[q->frame_count] = frame;
	q->held_at[q->frame_count++] = where;
	return true;
}

static bool is_in_frames_stack(const struct search *q, uint64_t where)
{
	for (size_t i = 0; i < q->frame_count; i++)
		if (where >= q->frames[i].stack_start && where < q->frames[i].stack_end)
			return true;
	return false;
}

static bool is_found(struct search *q, uint64_t where)
{
	if ((where >= q->x->skip_start && where < q->x->skip_end) || where < q->alive)
		return false;
	return q->for_ways_back ? !is_in_frames_stack(q, where) : !is_in_dead_frame(q, where);
}

/* Code that a program has made: an address in it may be at any byte, or be the distance of a call or jump. */
static bool code_leads_to_trampoline(const struct search *q, const uint8_t *code, uint64_t where)
{
	uint64_t word;
	int32_t distance;

	memcpy(&word, code, sizeof word);
	if (is_trampoline(q->x, word))
		return true;
	memcpy(&distance, code + 1, sizeof distance);
	return (code[0] == 0xe8 || code[0] == 0xe9) && is_trampoline(q->x, where + 5 + (uint64_t)(int64_t)distance);
}

static uint64_t search_pages(struct search *q, uint64_t start, uint64_t bytes, bool executable)
{
	const size_t step = executable && !q->for_ways_back ? 1 : sizeof(uint64_t);
	struct err ignored;
	uint64_t word;

	if (target_read(q->memory, start, q->buffer, bytes, &ignored) < 0)
		return 0; /* unmapped meanwhile, or beyond the end of its file */
	for (size_t i = 0; i + sizeof word <= bytes; i += step) {
		memcpy(&word, q->buffer + i, sizeof word);
		bool wanted = i % sizeof word == 0 && is_wanted(q, word);
		if ((wanted || (step == 1 && code_leads_to_trampoline(q, q->buffer + i, start + i))) &&
		    is_found(q, start + i))
			return start + i;
	}
	return 0;
}

/* Memory that many share, but of no file on disk. */
static bool is_shared_memory(const struct mapping *m)
{
	return m->shared && (strncmp(m->path, "/memfd:", 7) == 0 || strncmp(m->path, "/dev/shm/", 9) == 0 ||
	                     strncmp(m->path, "/dev/zero", 9) == 0 || strncmp(m->path, "/SYSV", 5) == 0);
}

/* Pages that are not there hold nothing; to read them would make them resident. In a private mapping of a file only
 * copies do. */
static bool may_hold(const struct mapping *m, uint64_t entry)
{
	if (!(entry & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED)))
		return false;
	return (m->prot & PROT_WRITE) || m->shared || !(entry & PAGEMAP_FILE);
}

static uint64_t search_mapping(struct search *q, const struct mapping *m)
{
	const bool executable = (m->prot & PROT_EXEC) != 0;
	/* In code an address may reach from one chunk into the next. */
	const uint64_t step = CHUNK_BYTES - (executable ? PAGE_BYTES : 0);
	uint64_t entries[CHUNK_PAGES];

	for (uint64_t at = q->alive & ~(uint64_t)(PAGE_BYTES - 1); at < m->end; at += step) {
		if (watchdog_asked_twice()) {
			q->given_up = true;
			return 0;
		}
		size_t pages = (m->end - at < CHUNK_BYTES ? m->end - at : CHUNK_BYTES) / PAGE_BYTES;
		watchdog_call_begin();
		ssize_t n =
			pread(q->pagemap, entries, pages * sizeof *entries, (off_t)(at / PAGE_BYTES * sizeof *entries));
		watchdog_call_end();
		if (n != (ssize_t)(pages * sizeof *entries))
			return 0;
		for (size_t i = 0; i < pages;) {
			size_t first = i;
			while (i < pages && may_hold(m, entries[i]))
				i++;
			uint64_t found = i > first ? search_pages(q, at + first * PAGE_BYTES, (i - first) * PAGE_BYTES,
			                                          executable)
			                           : 0;
			if (found)
				return found;
			i += i == first;
		}
	}
	return 0;
}

/*
 * What the program has protected after it wrote there is searched as well: a table that was made read-only, a page that
 * is closed for the moment, code. Of our own memory only the payload's data are mapped private, and those are skipped.
 */
static bool worth_searching(const struct mapping *m)
{
	bool special = m->path[0] == '[' && m->path[1] == 'v'; /* [vvar] and kin */

	if (special || strstr(m->path, "/memfd:memattach"))
		return false;
	return !m->shared || ((m->prot & PROT_WRITE) && (m->prot & PROT_READ)) || is_shared_memory(m);
}

static int search_all(struct search *q, const struct target *t, uint64_t *found, struct err *e)
{
	struct maps maps;

	int rc = live_thread_maps(t, &maps, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < maps.count && !*found; i++) {
		if (!worth_searching(&maps.list[i]))
			continue;
		q->alive = alive_from(q->x, &maps, &maps.list[i]);
		*found = search_mapping(q, &maps.list[i]);
	}
	maps_free(&maps);
	return q->given_up
	               ? err_set(e, EINTR, "interrupted twice while copied addresses of trampolines were searched for")
	               : 0;
}

/* *found: the address of a trampoline in a frame whose handler may go on. */
static int search_ways_back(struct search *q, const struct target *t, uint64_t *found, struct err *e)
{
	uint64_t at = 0, word = 0;
	struct err ignored;

	q->for_ways_back = true;
	int rc = search_all(q, t, &at, e);
	if (rc < 0 || !at)
		return rc;
	/* It may have changed since: any of the frames will do then. */
	size_t i = target_read_u64(q->memory, at, &word, &ignored) == 0 ? way_back(q, word) : q->frame_count;
	*found = q->held_at[i < q->frame_count ? i : 0];
	return 0;
}

int escape_search(const struct escape *x, const struct target *t, const struct target_memory *memory, uint64_t *found,
                  struct err *e)
{
	AUTO_FREE uint8_t *buffer = malloc(CHUNK_BYTES);
	struct search q = { .x = x, .memory = memory, .buffer = buffer };
	AUTO_CLOSE int pagemap = -1;

	if (!buffer)
		return err_set(e, ENOMEM, "out of memory");
	*found = 0;
	int rc = live_thread_open(t, "pagemap", &pagemap, e);
	q.pagemap = pagemap;
	for (int pass = 0; pass < PASSES && rc == 0 && !*found; pass++) {
		q.frame_count = 0;
		rc = search_all(&q, t, found, e);
	}
	if (rc == 0 && !*found && q.frame_count)
		rc = search_ways_back(&q, t, found, e);
	return rc;
}
