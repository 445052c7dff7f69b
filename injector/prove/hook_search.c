/* SPDX-License-Identifier: MIT */
#include "prove/hook_search.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "control.h"
#include "prove/ended_stack.h"
#include "process/live_thread.h"
#include "search/memory_search.h"
#include "base/now.h"
#include "host/watchdog.h"
#include "host/clocks.h"

#define PAGE_BYTES 4096u
#define SWAP_LOOKS 20 /* a page that the kernel moves looks as if it was swapped out for a moment */
#define SWAP_PAUSE_NS 500000

struct search {
	const struct hook_search *x;
	const struct target_memory *memory;
	struct page_scan *pages;
	uint64_t cpu_end_ns; /* of this thread's clock */
	const struct maps *maps;
	const struct mapping *mapping; /* that is searched, */
	uint64_t alive;                /* and where it begins to be alive */
	uint64_t ended;                /* or, asked for the bytes in the buffer: up to where it is an ended thread's */
	bool ended_asked;
	bool walked;                    /* the mapping is a stack on which no hook is alive */
	struct thread_stacks stacks;    /* that share their mapping */
	struct thread_stack last_ended; /* for the same bytes: one of an ended thread among those; end 0: none */
	uint64_t no_ended;              /* … a page around which there is none; 0: no page */
	bool over;                      /* beyond a limit: nothing more is read */
	bool given_up;                  /* memattach was asked twice to end */
	uint64_t found;
};

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
static uint64_t alive_from(const struct hook_search *x, const struct maps *maps, const struct mapping *m, bool *walked)
{
	const struct stack_position *lowest = NULL;

	for (size_t i = 0; i < x->stack_count; i++)
		if (x->stacks[i].sp >= m->start && x->stacks[i].sp < m->end &&
		    (!lowest || x->stacks[i].sp < lowest->sp))
			lowest = &x->stacks[i];
	*walked = lowest && lowest->walked && is_stack_of(maps, m, lowest);
	return *walked ? lowest->sp : m->start;
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

/* On the stack of a thread that was walked, and of no other? */
static bool is_on_walked_stack(const struct search *q, uint64_t where)
{
	const struct thread_stack *stack = thread_stacks_at(&q->stacks, where);

	return q->walked || (stack && stack->sp > stack->start);
}

static bool is_hook_at(struct search *q, uint64_t word, uint64_t where)
{
	return word == (HOOK_LIVE_MAGIC ^ where) && !is_on_walked_stack(q, where) && where >= q->alive &&
	       !is_on_ended_stack(q, where);
}

static bool search_words(void *context, const uint64_t *words, uint64_t start, size_t count)
{
	struct search *q = context;

	q->ended_asked = false;
	for (size_t i = 0; i < count && !q->found; i++)
		if (is_hook_at(q, words[i], start + i * sizeof *words))
			q->found = start + i * sizeof *words;
	return q->found != 0;
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

/* Asked to end, or beyond the limit: nothing more is read. */
static bool is_over(void *context)
{
	struct search *q = context;

	if (watchdog_asked_twice())
		q->given_up = true;
	q->over |= q->given_up || now_ns(CLOCK_THREAD_CPUTIME_ID) >= q->cpu_end_ns;
	return q->over;
}

/* Asks for the pages of a run again until none is swapped out, or it stays so. */
static bool comes_back(struct search *q, const struct page_run *run)
{
	bool swapped = true;

	for (unsigned i = 0; i < SWAP_LOOKS && swapped && !is_over(q); i++) {
		clock_pause(SWAP_PAUSE_NS);
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

/* One that stays swapped out is not brought back: then nothing is known. */
static enum memory_run choose_run(void *context, const struct page_run *run)
{
	struct search *q = context;

	if (!may_hold(q->mapping, run))
		return MEMORY_RUN_PASSED;
	if (!run->swapped)
		return MEMORY_RUN_READ;
	if (comes_back(q, run))
		return MEMORY_RUN_CHANGED;
	q->over = true;
	return MEMORY_RUN_PASSED;
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

/* As it is entered: what is known of its stacks. */
static bool enter_mapping(void *context, const struct mapping *m)
{
	struct search *q = context;

	if (!worth_searching(m))
		return false;
	q->mapping = m;
	q->alive = alive_from(q->x, q->maps, m, &q->walked);
	return true;
}

static int search_all(struct search *q, const struct target *t, struct err *e)
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
	q->maps = &maps;
	const struct memory_search search = {
		q->memory, q->pages, q, is_over, enter_mapping, choose_run, search_words
	};
	rc = memory_search(&search, t, &maps, e);
	thread_stacks_free(&q->stacks);
	maps_free(&maps);
	return rc < 0        ? rc
	       : q->given_up ? err_set(e, EINTR, "interrupted twice while hooks that are alive were searched for")
	                     : 0;
}

/* As is known without a search. */
static bool is_too_much(const struct target *t)
{
	uint64_t resident, swapped;

	target_private_memory(t, &resident, &swapped);
	return swapped || resident > HOOK_SEARCH_BYTES_MAX;
}

int hook_search(const struct hook_search *x, const struct target *t, const struct target_memory *memory,
                struct page_scan *pages, uint64_t *found, struct err *e)
{
	struct search q = { .x = x, .memory = memory, .pages = pages };

	q.cpu_end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + HOOK_SEARCH_CPU_NS_MAX;
	const int rc = is_too_much(t) ? 0 : search_all(&q, t, e);
	*found = q.found;
	return rc;
}

bool hook_search_lives(const struct target_memory *memory, uint64_t found)
{
	uint64_t word;

	return target_read_u64(memory, found, &word, ERR_IGNORED) == 0 && word == (HOOK_LIVE_MAGIC ^ found);
}
