/* SPDX-License-Identifier: MIT */
#include "escape.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "arch/signal_frame.h"
#include "cleanup.h"
#include "control.h"
#include "ended_stack.h"
#include "live_thread.h"
#include "now.h"
#include "size.h"
#include "stack_words.h"
#include "tracee.h"
#include "watchdog.h"

#define PAGE_BYTES 4096u
#define CHUNK_BYTES (256u << 10) /* stays in a processor's second cache between reading and searching */
#define PASSES 2
#define FRAMES_MAX 64u
#define SWAP_LOOKS 20 /* a page that the kernel moves looks as if it was swapped out for a moment */
#define SWAP_PAUSE_NS 500000
#define SWEEP_PAUSE_NS 2000000

struct search {
	const struct escape *x;
	const struct target_memory *memory;
	struct page_scan *pages;
	uint64_t cpu_end_ns;                    /* of this thread's clock */
	uint8_t *buffer;                        /* CHUNK_BYTES */
	struct signal_frame frames[FRAMES_MAX]; /* that seem dead and hold the address of a trampoline, at */
	uint64_t held_at[FRAMES_MAX];
	size_t frame_count;
	const struct maps *maps;
	const struct mapping *mapping; /* that is searched, */
	uint64_t alive;                /* and where it begins to be alive */
	uint64_t ended;                /* or, asked for the bytes in the buffer: up to where it is an ended thread's */
	bool ended_asked;
	bool walked;                    /* the mapping is a stack on which no hook is alive */
	struct thread_stacks stacks;    /* that share their mapping */
	struct thread_stack last_ended; /* for the same bytes: one of an ended thread among those; end 0: none */
	uint64_t no_ended;              /* … a page around which there is none; 0: no page */
	struct noted_words noted;       /* what was met on stacks that are owned */
	uint64_t sweeps_end_ns;         /* until when they are cleared and waited for; 0: none was yet */
	bool stacks_only;
	bool on_new_stack; /* of what was found */
	bool given_up;     /* memattach was asked twice to end */
	struct escape_result *result;
	uint64_t hook;      /* marker of one that is alive, 0: none was found */
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
static bool is_stack_of(const struct maps *maps, const struct mapping *m, const struct stack_position *stack)
{
	const struct mapping *below = m > maps->list ? m - 1 : NULL;

	if (strcmp(m->path, "[stack]") == 0)
		return true;
	return below && below->end == m->start && below->prot == 0 && stack->thread_pointer > stack->sp &&
	       stack->thread_pointer < m->end;
}

/*
 * Where the mapping begins to be alive: a stack below its stack pointer is not. Only where the thread's walk came to
 * where the thread began: on a coroutine's stack, which may lie in a frame of its own, it knows nothing of the frames
 * that are left below. *walked: of that stack.
 */
static uint64_t alive_from(const struct escape *x, const struct maps *maps, const struct mapping *m, bool *walked)
{
	const struct stack_position *lowest = NULL;

	for (size_t i = 0; i < x->stack_count; i++)
		if (x->stacks[i].sp >= m->start && x->stacks[i].sp < m->end &&
		    (!lowest || x->stacks[i].sp < lowest->sp))
			lowest = &x->stacks[i];
	*walked = lowest && lowest->walked && is_stack_of(maps, m, lowest);
	return *walked ? lowest->sp : m->start;
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

static bool is_on_ended_stack(struct search *q, uint64_t where)
{
	if (!q->ended_asked) {
		q->ended = ended_stack_end(q->memory, q->x->tid_offset, q->maps, q->mapping);
		q->last_ended = (struct thread_stack){ 0 };
		q->no_ended = 0;
	}
	q->ended_asked = true;
	if (where < q->ended || (where >= q->last_ended.start && where < q->last_ended.sp))
		return true;
	if (where / PAGE_BYTES == q->no_ended)
		return false;
	if (ended_stack_around(&q->last_ended, q->memory, q->x->tid_offset, q->mapping, where))
		return true;
	q->no_ended = where / PAGE_BYTES;
	return false;
}

static bool is_below_stack_pointer(const struct search *q, uint64_t where)
{
	const struct thread_stack *stack = thread_stacks_at(&q->stacks, where);

	return where < q->alive || (stack && where < stack->sp);
}

/* On the stack of a thread that was walked, and of no other? */
static bool is_on_walked_stack(const struct search *q, uint64_t where)
{
	const struct thread_stack *stack = thread_stacks_at(&q->stacks, where);

	return q->walked || (stack && stack->sp > stack->start);
}

/*
 * Is the thread that was walked on its own stack, and is nothing else there? Memory that the program brought for a
 * stack may hold anything. shared: it is one of those that share their mapping.
 */
static bool is_owner(const struct search *q, const struct stack_position *p, const struct thread_stack *stack,
                     bool shared)
{
	if (!p->walked)
		return false;
	if (shared)
		return p->thread_pointer >= stack->start && p->thread_pointer < stack->end;
	if (strcmp(q->mapping->path, "[stack]") == 0)
		return p->tid == q->x->pid;
	return is_stack_of(q->maps, q->mapping, p) &&
	       thread_stack_above_guard(q->memory, q->mapping, p->thread_pointer);
}

/* NULL: no thread is on the stack that it owns, or others are. */
static const struct stack_position *owner_of(const struct search *q, const struct thread_stack *stack, bool shared)
{
	const struct stack_position *owner = NULL;

	for (size_t i = 0; i < q->x->stack_count; i++) {
		const struct stack_position *p = &q->x->stacks[i];
		if (p->sp < stack->start || p->sp >= stack->end)
			continue;
		if (!is_owner(q, p, stack, shared) || (owner && owner->tid != p->tid))
			return NULL;
		owner = p;
	}
	return owner;
}

/* A word on a stack that is owned is left for later. */
static bool is_noted(struct search *q, uint64_t where, uint64_t value)
{
	const bool grows = strcmp(q->mapping->path, "[stack]") == 0 && q->mapping > q->maps->list;
	const struct thread_stack whole = { .start = grows ? q->mapping[-1].end : q->mapping->start,
		                            .end = q->mapping->end };
	const struct thread_stack *shared = thread_stacks_at(&q->stacks, where), *stack = shared ? shared : &whole;
	const struct stack_word word = { where, value };

	if (!q->x->clear || (q->mapping->prot & PROT_EXEC))
		return false;
	const struct stack_position *owner = owner_of(q, stack, shared != NULL);
	return owner && noted_words_add(&q->noted, owner, stack, &word);
}

static bool has_position(const struct search *q, const struct mapping *m)
{
	for (size_t i = 0; i < q->x->stack_count; i++)
		if (q->x->stacks[i].sp >= m->start && q->x->stacks[i].sp < m->end)
			return true;
	return false;
}

/* May a thread have its stack there that was born since the others were looked at? */
static bool may_be_new_stack(const struct search *q)
{
	const struct mapping *m = q->mapping, *below = m > q->maps->list ? m - 1 : NULL;

	return !m->path[0] && (has_position(q, m) || (below && below->end == m->start && below->prot == PROT_NONE));
}

static bool is_found(struct search *q, uint64_t where, uint64_t word)
{
	const bool below = is_below_stack_pointer(q, where);

	if ((where >= q->x->skip_start && where < q->x->skip_end) || is_on_ended_stack(q, where))
		return false;
	if (q->for_ways_back)
		return !below && !is_in_frames_stack(q, where);
	if ((!below && is_in_dead_frame(q, where)) || is_noted(q, where, word))
		return false;
	q->on_new_stack = may_be_new_stack(q);
	return true;
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

/* Does a word of memory that is no code hold what is wanted? All but a few words in a thousand million end here. */
static bool may_be_wanted(const struct search *q, uint64_t word)
{
	const struct escape *x = q->x;
	uint64_t bytes = x->end - x->start;

	return q->for_ways_back || word - x->start < bytes ||
	       (x->has_guard && (rotate_right(word, 17) ^ x->guard) - x->start < bytes);
}

static bool is_hook_at(const struct search *q, uint64_t word, uint64_t where)
{
	return word == (HOOK_LIVE_MAGIC ^ where) && !q->for_ways_back && !is_on_walked_stack(q, where);
}

/* Remembers a hook that is alive, and goes on: the first word that is found may be a copy of an address. */
static void note_hook(struct search *q, uint64_t where)
{
	if (where >= q->alive && !is_on_ended_stack(q, where))
		q->hook = where;
}

static uint64_t search_words(struct search *q, uint64_t start, size_t bytes)
{
	const uint64_t *words = (const void *)q->buffer;

	for (size_t i = 0; i < bytes / sizeof *words; i++)
		if (is_hook_at(q, words[i], start + i * sizeof *words))
			note_hook(q, start + i * sizeof *words);
		else if (may_be_wanted(q, words[i]) && is_wanted(q, words[i]) &&
		         is_found(q, start + i * sizeof *words, words[i]))
			return start + i * sizeof *words;
	return 0;
}

static uint64_t search_code(struct search *q, uint64_t start, size_t bytes)
{
	for (size_t i = 0; i + sizeof(uint64_t) <= bytes; i++) {
		uint64_t word;
		memcpy(&word, q->buffer + i, sizeof word);
		if (is_hook_at(q, word, start + i))
			note_hook(q, start + i);
		bool wanted = i % sizeof word == 0 && is_wanted(q, word);
		if ((wanted || code_leads_to_trampoline(q, q->buffer + i, start + i)) && is_found(q, start + i, word))
			return start + i;
	}
	return 0;
}

static uint64_t search_pages(struct search *q, uint64_t start, uint64_t bytes, bool executable)
{
	struct err ignored;

	q->ended_asked = false;
	if (target_read(q->memory, start, q->buffer, bytes, &ignored) < 0)
		return 0; /* unmapped meanwhile, or beyond the end of its file */
	return executable && !q->for_ways_back ? search_code(q, start, bytes) : search_words(q, start, bytes);
}

/* Memory that many share, but of no file on disk. */
static bool is_shared_memory(const struct mapping *m)
{
	return m->shared && (strncmp(m->path, "/memfd:", 7) == 0 || strncmp(m->path, "/dev/shm/", 9) == 0 ||
	                     strncmp(m->path, "/dev/zero", 9) == 0 || strncmp(m->path, "/SYSV", 5) == 0);
}

/* In a private mapping of a file only copies hold anything. */
static bool may_hold(const struct mapping *m, const struct page_run *run)
{
	return (m->prot & PROT_WRITE) || m->shared || !run->file;
}

__attribute__((format(printf, 2, 3))) static void unproven(struct search *q, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(q->result->why, sizeof q->result->why, format, ap);
	va_end(ap);
	q->result->verdict = ESCAPE_UNPROVEN;
}

/* Asked to end, or beyond the limit: nothing more is read. */
static bool is_over(struct search *q)
{
	if (watchdog_asked_twice())
		q->given_up = true;
	else if (q->result->verdict == ESCAPE_NONE && now_ns(CLOCK_THREAD_CPUTIME_ID) >= q->cpu_end_ns)
		unproven(q, "the search was ended after %.1f s of processor time", ESCAPE_CPU_NS_MAX / 1e9);
	return q->given_up || q->result->verdict != ESCAPE_NONE;
}

static uint64_t search_run(struct search *q, const struct mapping *m, struct page_run run)
{
	const bool executable = (m->prot & PROT_EXEC) != 0;
	/* In code an address may reach from one chunk into the next. */
	const uint64_t step = CHUNK_BYTES - (executable ? PAGE_BYTES : 0);
	uint64_t found = 0;

	for (uint64_t at = run.start; at < run.end && !found && !is_over(q); at += step)
		found = search_pages(q, at, run.end - at < CHUNK_BYTES ? run.end - at : CHUNK_BYTES, executable);
	return found;
}

/* Asks for the pages of a run again until none is swapped out, or it stays so. */
static bool comes_back(struct search *q, const struct page_run *run)
{
	const struct timespec pause = { .tv_nsec = SWAP_PAUSE_NS };
	bool swapped = true;

	for (unsigned i = 0; i < SWAP_LOOKS && swapped && !is_over(q); i++) {
		nanosleep(&pause, NULL);
		swapped = false;
		for (uint64_t at = run->start; at < run->end && !swapped;) {
			if (!page_scan_step(q->pages, &at, run->end))
				return true; /* unmapped */
			for (size_t k = 0; k < q->pages->count; k++)
				swapped |= q->pages->runs[k].swapped;
		}
	}
	return !swapped;
}

static uint64_t search_mapping(struct search *q, const struct mapping *m)
{
	for (uint64_t at = m->start; at < m->end && !is_over(q);) {
		if (!page_scan_step(q->pages, &at, m->end))
			return 0;
		for (size_t i = 0; i < q->pages->count && !is_over(q); i++) {
			const struct page_run run = q->pages->runs[i];
			if (!may_hold(m, &run))
				continue;
			if (run.swapped && !comes_back(q, &run)) {
				unproven(q, "memory at 0x%llx is swapped out, and is not brought back",
				         (unsigned long long)run.start);
				return 0;
			}
			if (run.swapped) { /* the runs are others now */
				at = run.start;
				break;
			}
			uint64_t found = search_run(q, m, run);
			if (found)
				return found;
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
	rc = thread_stacks_find(&q->stacks, q->x->stacks, q->x->stack_count, q->memory, &maps, e);
	if (rc < 0) {
		maps_free(&maps);
		return rc;
	}
	page_scan_prepare(q->pages, t, &maps);
	for (size_t i = 0; i < maps.count && !*found && !is_over(q); i++) {
		if (!worth_searching(&maps.list[i]) || (q->stacks_only && !has_position(q, &maps.list[i])))
			continue;
		q->maps = &maps;
		q->mapping = &maps.list[i];
		q->alive = alive_from(q->x, &maps, q->mapping, &q->walked);
		*found = search_mapping(q, q->mapping);
	}
	thread_stacks_free(&q->stacks);
	maps_free(&maps);
	return q->given_up
	               ? err_set(e, EINTR, "interrupted twice while copied addresses of trampolines were searched for")
	               : 0;
}

/* After a search that met words on stacks. *found: one that stays; 0: it is to be made again. */
static void sweep(struct search *q, uint64_t *found)
{
	const struct timespec pause = { .tv_nsec = SWEEP_PAUSE_NS };
	const uint64_t first = noted_words_first(&q->noted);

	if (!q->sweeps_end_ns)
		q->sweeps_end_ns = now_ns(CLOCK_MONOTONIC) + ESCAPE_SWEEPS_NS;
	/* Another thread may have the stack of one that is gone. */
	const uint64_t alive =
		noted_words_clear(&q->noted, q->x->clear, q->x->context, q->sweeps_end_ns, &q->on_new_stack);

	if (q->on_new_stack || now_ns(CLOCK_MONOTONIC) >= q->sweeps_end_ns)
		*found = alive ? alive : first;
	else if (alive)
		nanosleep(&pause, NULL);
	tracee_release_late();
}

static int search_copies(struct search *q, const struct target *t, uint64_t *found, struct err *e)
{
	unsigned clean = 0, wanted = PASSES;
	int rc = 0;

	q->stacks_only = q->x->clear != NULL;
	while (rc == 0 && !*found && clean < wanted && q->result->verdict == ESCAPE_NONE) {
		q->frame_count = 0;
		q->hook = 0;
		noted_words_forget(&q->noted);
		rc = search_all(q, t, found, e); /* -EINTR, if that is asked for twice */
		if (rc < 0 || *found)
			break;
		if (q->noted.count) {
			wanted = q->stacks_only ? wanted : PASSES + 1;
			clean = 0;
			q->stacks_only = true;
			sweep(q, found);
		} else {
			clean += !q->stacks_only;
			q->stacks_only = false;
		}
	}
	noted_words_forget(&q->noted);
	q->stacks_only = false;
	return rc;
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

/* Where the search for trampolines has ended at one. */
static int search_hooks(struct search *q, const struct target *t, struct err *e)
{
	struct escape hooks_only = *q->x;
	uint64_t nothing = 0;

	hooks_only.start = hooks_only.end = 0;
	q->x = &hooks_only;
	q->for_ways_back = false;
	return search_all(q, t, &nothing, e);
}

bool escape_is_unprovable(const struct target *t, char why[ESCAPE_WHY])
{
	uint64_t resident, swapped;
	char size[SIZE_TEXT], limit[SIZE_TEXT];

	target_private_memory(t, &resident, &swapped);
	if (swapped)
		snprintf(why, ESCAPE_WHY, "%s of its memory are swapped out, and are not brought back",
		         size_format((double)swapped, size));
	else if (resident > ESCAPE_BYTES_MAX)
		snprintf(why, ESCAPE_WHY, "its %s of memory are too much to be searched (limit %s)",
		         size_format((double)resident, size), size_format((double)ESCAPE_BYTES_MAX, limit));
	return swapped || resident > ESCAPE_BYTES_MAX;
}

int escape_search(const struct escape *x, const struct target *t, const struct target_memory *memory,
                  struct page_scan *pages, struct escape_result *result, struct err *e)
{
	AUTO_FREE uint8_t *buffer = malloc(CHUNK_BYTES);
	struct search q = { .x = x, .memory = memory, .buffer = buffer, .pages = pages, .result = result };
	uint64_t found = 0;
	int rc = 0;

	if (!buffer)
		return err_set(e, ENOMEM, "out of memory");
	*result = (struct escape_result){ 0 };
	q.cpu_end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + ESCAPE_CPU_NS_MAX;
	if (escape_is_unprovable(t, result->why))
		result->verdict = ESCAPE_UNPROVEN;
	if (result->verdict == ESCAPE_NONE)
		rc = search_copies(&q, t, &found, e);
	if (rc == 0 && !found && q.frame_count && result->verdict == ESCAPE_NONE)
		rc = search_ways_back(&q, t, &found, e);
	const bool on_new_stack = q.on_new_stack;
	if (rc == 0 && found && !q.hook)
		rc = search_hooks(&q, t, e);
	if (rc == 0 && found)
		*result =
			(struct escape_result){ .verdict = ESCAPE_FOUND, .found = found, .on_new_stack = on_new_stack };
	if (rc == 0 && q.hook)
		*result = (struct escape_result){ .verdict = ESCAPE_HOOK, .found = q.hook };
	return rc;
}

bool escape_hook_lives(const struct target_memory *memory, uint64_t found)
{
	struct err ignored;
	uint64_t word;

	return target_read_u64(memory, found, &word, &ignored) == 0 && word == (HOOK_LIVE_MAGIC ^ found);
}
