/* SPDX-License-Identifier: MIT */
/*
 * The slow path of all hooks: what to record about a call, around the call of the original.
 *
 * - The record of a block that is freed is taken, or hidden from all others, before the original runs, one of an
 *   allocation is made after it: between, the address may be another thread's block.
 * - realloc takes the old record out of sight, calls the original, then drops it, or puts it back if the call failed.
 * - A function that passes on to another one that is hooked counts, the inner call does not (outer_call.h).
 * - The original runs with no thread state taken and nothing locked; it may throw, call hooks, or never return.
 * - No system call, no message, no change of errno other than the original's.
 *
 * The record is written with the thread state of the thread taken, so that a signal handler that allocates meanwhile is
 * counted as lost_busy, and leaves the thread state's history block and random numbers alone. The tables themselves are
 * lock-free.
 */
#include <stdbool.h>

#include "arch/machine.h"
#include "control.h"
#include "exponential.h"
#include "tables/filter.h"
#include "tables/history.h"
#include "hook.h"
#include "hooks.h"
#include "walk/known_stack.h"
#include "tables/live_table.h"
#include "map_hook.h"
#include "outer_call.h"
#include "python/python_frames.h"
#include "walk/recent_stack.h"
#include "recorder.h"
#include "sampler.h"
#include "session_block.h"
#include "tables/stack_hash.h"
#include "tables/stack_table.h"
#include "trampoline_setup.h"
#include "walk/unwind.h"
#include "walk/unwind_step.h"
#include "walk/walked.h"

#define TIMED_ONE_IN 16

struct hook_facts {
	uint8_t shape;
	uint8_t size;
};

#define HOOK_FACTS(id, symbol, shape, size, group) { shape, size },
static const struct hook_facts hook_facts[] = { HOOK_LIST(HOOK_FACTS) };

/* The block that the call takes, of the shapes that take one. */
static uint64_t old_block(const struct hook_call *call)
{
	return call->arguments[hook_facts[call->hook].shape >= SHAPE_POOL];
}

static uint64_t call_original(const struct hook_call *call)
{
	if (UNLIKELY(trampolines_any_outer) && !call->inner && trampoline_setup_is_outer(call->trampoline))
		return outer_call_make(call);
	return outer_call_pass_on(call);
}

uint64_t hook_original(const struct hook_call *call)
{
	return call_original(call);
}

/* The bytes that the caller asks for; false if they do not fit a word, which the allocator will refuse. */
static bool requested_size(const struct hook_call *call, uint64_t *size)
{
	const uint64_t *a = call->arguments;

	switch (hook_facts[call->hook].size) {
	case SIZE_ARG0: *size = a[0]; return true;
	case SIZE_ARG1: *size = a[1]; return true;
	case SIZE_ARG2: *size = a[2]; return true;
	case SIZE_ARG0_X_ARG1: return !__builtin_mul_overflow(a[0], a[1], size);
	case SIZE_ARG1_X_ARG2: return !__builtin_mul_overflow(a[1], a[2], size);
	default: return false;
	}
}

/* At a large rate all that a sample needs has left the caches since the last one. */
static void prefetch_sample(const struct hook_call *call, const struct recorder *r)
{
	__builtin_prefetch(&r->counters.words[DUMP_COUNTER_samples_taken], 1);
	__builtin_prefetch(&r->counters.words[DUMP_COUNTER_slow_cycles], 1);
	known_stack_prefetch(r->tp);
	walked_prefetch(call->sp);
}

static uint32_t thread_id(uint64_t tp)
{
	return payload.tid_offset ? *(const uint32_t *)ARCH_TID(tp, payload.tid_offset) : 0;
}

/* Where allocators keep the size of a block, and what its free will write. */
static inline void block_prefetch(uint64_t block)
{
	__builtin_prefetch((const void *)(block - 16), 1);
}

/* Only for the C functions: an operator new of the target may return addresses inside of the allocator's blocks. */
static uint64_t usable_size(const struct hook_call *call, uint64_t block)
{
	uint64_t function = payload.usable_size;

	if (!function || call->hook >= HOOK_new)
		return 0;
	return ((uint64_t(*)(uint64_t))function)(block);
}

static uint64_t new_usable_size(const struct hook_call *call, uint64_t block, uint64_t size)
{
	if (hook_facts[call->hook].shape == SHAPE_POOL)
		return (size + POOL_ALIGNMENT - 1) & ~(uint64_t)(POOL_ALIGNMENT - 1);
	return usable_size(call, block);
}

/* A new stack with Python frames. Out of line: only threads of Python need room for them on their stacks. */
static __attribute__((noinline)) struct dump_stack *intern_python(struct stack_draft_frames *stack, uint64_t tp,
                                                                  uint64_t native, const struct unwind_result *walked,
                                                                  uint32_t *reference)
{
	uint64_t python[DUMP_PYTHON_FRAMES_MAX];

	stack->python = python;
	return python_frames_store(tp, native, walked, python) ? stack_table_intern(stack, reference) : 0;
}

/* A new stack, whose native part has this hash; NULL: no room. */
static struct dump_stack *intern_stack(const uint64_t *frames, uint64_t tp, uint64_t native,
                                       const struct unwind_result *walked, uint32_t *reference)
{
	struct stack_draft_frames stack;

	stack.draft.hash = walked->hash;
	stack.frames = frames;
	stack.count = walked->count;
	stack.flags = walked->flags;
	if (UNLIKELY(DUMP_STACK_PYTHON_COUNT(walked->flags)))
		return intern_python(&stack, tp, native, walked, reference);
	return stack_table_intern(&stack, reference);
}

/* The stack of the call, or NULL; its reference all the same. The mapping of a file has a stack of its own, so that it
 * is told apart wherever stacks are: in the sums, too. */
static struct dump_stack *record_stack(const struct hook_call *call, struct recorder *r, uint32_t *reference)
{
	struct unwind_start start = { .sp = call->sp, .fp = call->fp, .thread_pointer = r->tp };
	struct recent_stack *recent = thread_state_recent(r->thread);
	uint64_t frames[DUMP_FRAMES_MAX];
	struct unwind_result walked;
	struct dump_stack *stack;
	uint64_t native;

	unwind_walk(&start, recent, frames, &walked);
	counter_add(&r->counters, DUMP_COUNTER_frames_walked, walked.count);
	if (walked.fallback)
		counter_add(&r->counters, DUMP_COUNTER_frames_fallback, walked.fallback);
	if (walked.flags & DUMP_STACK_TRUNCATED)
		counter_add(&r->counters, DUMP_COUNTER_stacks_truncated, 1);
	if (walked.flags & DUMP_STACK_DEEP)
		counter_add(&r->counters, DUMP_COUNTER_stacks_deep, 1);
	if (UNLIKELY(call->file)) {
		walked.flags |= DUMP_STACK_FILE;
		walked.hash = stack_hash_spread(walked.hash ^ DUMP_STACK_FILE);
	}
	native = walked.hash;
	if (UNLIKELY(__atomic_load_n(&payload.has_python, __ATOMIC_ACQUIRE)))
		python_frames_add(r->tp, &walked);
	if (recent && recent->stack_hash == walked.hash) {
		*reference = recent->reference;
		return regions_stack(*reference);
	}
	stack = stack_table_find(walked.hash, reference);
	if (!stack) {
		unwind_frames_complete(recent, &walked, frames);
		stack = intern_stack(frames, r->tp, native, &walked, reference);
	}
	if (stack) {
		if (recent) {
			recent->stack_hash = walked.hash;
			recent->reference = *reference;
		}
		return stack;
	}
	counter_add(&r->counters, DUMP_COUNTER_lost_stack_full, 1);
	*reference = payload.dump->unknown_stack;
	return regions_stack(*reference);
}

static void record_sample(const struct hook_call *call, struct recorder *r, struct dump_live_record *record)
{
	enum live_reserved reserved;
	struct live_entry entry;
	struct dump_stack *stack = record_stack(call, r, &record->stack);

	if (UNLIKELY(call->file) && record->stack == payload.dump->unknown_stack)
		return; /* nothing would tell it from memory */
	__builtin_prefetch(stack, 1);
	while ((reserved = live_table_reserve(record->address, &entry)) == LIVE_PRESENT)
		recorder_finish(r, &entry, DUMP_HISTORY_FREE_MISSED);
	if (stack)
		exponential_add_sample(stack, record->size, record->rate_bytes);
	counter_add(&r->counters, DUMP_COUNTER_samples_taken, 1);
	if (reserved == LIVE_RESERVED) {
		/* Last, after all locked instructions: the header of a block is seldom in a cache, and so nothing
		 * waits for it but a store. */
		record->usable = new_usable_size(call, record->address, record->size);
		live_table_publish(&entry, record);
		return;
	}
	counter_add(&r->counters, DUMP_COUNTER_lost_live_full, 1);
	if (stack)
		__atomic_fetch_add(&stack->unkept, 1, __ATOMIC_RELAXED);
}

/* Records the new block of a sampled call. Out of line: its frames are not on the stack while the original runs. */
__attribute__((noinline)) void hook_record_block(const struct hook_call *call, uint64_t block, uint64_t size,
                                                 uint32_t rate)
{
	struct dump_live_record record;
	struct recorder r;

	live_table_prefetch(block);
	block_prefetch(block);
	if (!__atomic_load_n(&payload_switch, __ATOMIC_RELAXED))
		return; /* a child that was forked during the call, or the session ends */
	recorder_open(&r, call, clock_stamp());
	if (!r.thread || r.fresh) { /* fresh: forgotten since it was charged */
		counter_add(&r.counters, DUMP_COUNTER_lost_busy, 1);
	} else if (clock_lease_holds(r.stamp)) {
		/* Member by member: an initializer of the whole becomes `rep stos`, which costs as much as four frames.
		 */
		record.address = block;
		record.size = size;
		record.stamp = r.stamp;
		record.rate_bytes = rate;
		record.tid = thread_id(r.tp);
		record.hook = (uint16_t)call->hook;
		record.flags = 0;
		if (rate > RECENT_RATE_MAX)
			prefetch_sample(call, &r);
		record_sample(call, &r, &record);
	}
	recorder_close(&r);
}

static void finish_or_put_back(struct recorder *r, const struct live_entry *entry)
{
	if (clock_lease_holds(r->stamp))
		recorder_finish(r, entry, 0);
	else
		live_table_put_back(entry);
}

/* One free in TIMED_ONE_IN, for all. */
static bool is_timed(uint64_t block)
{
	return block * HASH_MULTIPLIER >> 60 == 0;
}

/* Most frees that come here at a large rate are not of sampled blocks, only of like hash: they need no thread state and
 * no clock. */
static __attribute__((noinline)) void record_free(const struct hook_call *call, uint64_t block)
{
	bool timed = is_timed(block);
	uint64_t stamp = timed ? clock_stamp() : 0;
	struct live_entry entry;
	struct recorder r;

	if (!live_table_take(block, &entry)) {
		r.counters = counter_row(0, arch_thread_pointer());
		counter_add(&r.counters, DUMP_COUNTER_filter_hits, 1);
		if (timed)
			recorder_add_cycles(&r.counters, TIMED_ONE_IN, clock_stamp() - stamp);
		return;
	}
	recorder_open(&r, call, clock_stamp());
	counter_add(&r.counters, DUMP_COUNTER_filter_hits, 1);
	finish_or_put_back(&r, &entry);
	recorder_close(&r);
}

/*
 * A block of which no allocation was seen goes: it is from before the session, or from within the allocator's own
 * module. Only where every block is recorded can it be told from the others; a sampled session would have to count all
 * frees and subtract, and the error of that difference is that of all that was allocated and freed again.
 */
static void count_unseen(const struct hook_call *call, uint64_t block)
{
	struct dump_header *dump = payload.dump;
	uint8_t shape = hook_facts[call->hook].shape;

	if (!block || (shape != SHAPE_FREE && shape != SHAPE_POOL_FREE) || call->inner)
		return;
	__atomic_fetch_add(&dump->frees_unseen, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&dump->frees_unseen_bytes, usable_size(call, block), __ATOMIC_RELAXED);
}

/* What a free has to do before and after the original. */
struct freeing {
	struct live_entry entry;
	uint64_t stamp;
	uint64_t cycles; /* spent before, if it is timed */
	bool timed;
	bool known;
};

static __attribute__((noinline)) void record_unknown(const struct hook_call *call, uint64_t block,
                                                     const struct freeing *f)
{
	struct counter_row counters = counter_row(0, arch_thread_pointer());

	counter_add(&counters, DUMP_COUNTER_filter_hits, 1);
	if (f->timed)
		recorder_add_cycles(&counters, TIMED_ONE_IN, f->cycles);
	count_unseen(call, block);
}

/* Out of line, as hook_record_block(). */
static __attribute__((noinline)) void record_freed(const struct hook_call *call, const struct freeing *f)
{
	uint64_t resumed = f->timed ? clock_stamp() : 0;
	struct recorder r;

	recorder_open(&r, call, f->stamp);
	counter_add(&r.counters, DUMP_COUNTER_filter_hits, 1);
	if (live_table_take_hidden(&f->entry))
		recorder_finish(&r, &f->entry, 0);
	if (f->timed)
		recorder_add_cycles(&r.counters, TIMED_ONE_IN, f->cycles + clock_stamp() - resumed);
	recorder_leave(&r);
}

/*
 * Where every block is recorded. The record is found and hidden before the original frees the block, and taken after
 * it: nothing waits for it until the original has done its work, and what the original will miss is asked for, too.
 */
static uint64_t free_exact(const struct hook_call *call, uint64_t block)
{
	struct freeing f;
	uint64_t result;

	live_table_prefetch(block);
	block_prefetch(block);
	f.stamp = clock_stamp();
	if (!clock_lease_holds(f.stamp))
		return call_original(call);
	regions_refresh();
	f.known = live_table_hide(block, &f.entry);
	f.timed = is_timed(block);
	if (f.timed)
		f.cycles = clock_stamp() - f.stamp;
	if (!f.known)
		record_unknown(call, block, &f);
	result = call_original(call);
	if (f.known)
		record_freed(call, &f);
	return result;
}

/* Calls the original, which releases the block that begins at argument 0 (in shapes of pools, argument 1). */
static uint64_t release(const struct hook_call *call)
{
	if (filter_is_exact())
		return free_exact(call, old_block(call));
	record_free(call, old_block(call));
	return call_original(call);
}

/* The block that the call has made, 0 if it failed. */
static uint64_t new_block(const struct hook_call *call, uint64_t result)
{
	switch (hook_facts[call->hook].shape) {
	case SHAPE_OUT: return (uint32_t)result == 0 ? *(const uint64_t *)call->arguments[0] : 0;
	case SHAPE_RESIZE: return result >= call->arguments[1] ? call->arguments[0] : 0;
	default: return result;
	}
}

/* Nothing that throws is called here. If there is no block, the original is called without a frame of ours. */
static uint64_t call_quiet(struct hook_call *call, uint64_t quiet, bool aligned)
{
	const uint64_t *a = call->arguments;
	uint64_t block = ((uint64_t(*)(uint64_t, uint64_t))quiet)(a[aligned], a[!aligned]);

	call->again = !block;
	return block;
}

static uint64_t call_for_block(struct hook_call *call)
{
	bool aligned;
	uint64_t quiet = UNLIKELY(trampolines_any_quiet) ? trampoline_setup_quiet(call->trampoline, &aligned) : 0;

	return quiet ? call_quiet(call, quiet, aligned) : call_original(call);
}

/* The original has yet to run, without a frame of ours: the block that it may make is not seen. */
static __attribute__((noinline)) void count_unwatched(void)
{
	struct counter_row counters = counter_row(0, arch_thread_pointer());

	counter_add(&counters, DUMP_COUNTER_lost_busy, 1);
}

static uint64_t slow_allocate(struct hook_call *call)
{
	uint64_t size, block, result;
	uint32_t rate = requested_size(call, &size) ? sampler_charge(call, size) : 0;

	result = call_for_block(call);
	if (!rate || call->inner)
		return result;
	if (call->again)
		count_unwatched();
	block = new_block(call, result);
	if (block)
		hook_record_block(call, block, size, rate);
	return result;
}

static __attribute__((noinline)) void record_successor(const struct hook_call *call, const struct live_entry *entry,
                                                       bool gone)
{
	struct recorder r;

	if (!gone) {
		live_table_put_back(entry);
		return;
	}
	recorder_open(&r, call, clock_stamp());
	recorder_finish(&r, entry, 0);
	recorder_close(&r);
}

/* realloc(p, 0) that returns NULL has freed p. */
static bool frees_by_size(const struct hook_call *call, bool fits, uint64_t size)
{
	return hook_facts[call->hook].shape == SHAPE_REALLOC && fits && !size;
}

/* A block goes and its successor comes, in the same place or another. */
static uint64_t slow_reallocate(const struct hook_call *call)
{
	uint64_t size = 0, block, result;
	bool fits = requested_size(call, &size);
	uint32_t rate = fits ? sampler_charge(call, size) : 0;
	struct live_entry old;
	bool known;

	regions_refresh();
	known = live_table_take(old_block(call), &old);
	result = call_original(call);
	block = new_block(call, result);
	if (known)
		record_successor(call, &old, block || frees_by_size(call, fits, size));
	if (rate && block && !call->inner)
		hook_record_block(call, block, size, rate);
	return result;
}

uint64_t hook_call_slow(struct hook_call *call)
{
	call->inner = UNLIKELY(trampolines_any_outer) && outer_call_holds(call);
	call->file = 0;
	switch (hook_facts[call->hook].shape) {
	case SHAPE_FREE:
	case SHAPE_POOL_FREE: return release(call);
	case SHAPE_REALLOC:
	case SHAPE_RESIZE:
	case SHAPE_POOL_REALLOC: return slow_reallocate(call);
	case SHAPE_MAP: return map_hook_map(call);
	case SHAPE_UNMAP: return map_hook_unmap(call);
	case SHAPE_REMAP: return map_hook_remap(call);
	default: return slow_allocate(call);
	}
}
