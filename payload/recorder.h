/* SPDX-License-Identifier: MIT */
/*
 * One recording of a hook: the thread state that is taken for it, its counters, its time. For hook.c, where it is small
 * enough to be inlined, and for map_hook.c.
 */
#pragma once

#include "arch/machine.h"
#include "clock.h"
#include "hook_call.h"
#include "payload.h"
#include "tables/counters.h"
#include "tables/history.h"
#include "tables/live_table.h"
#include "tables/regions.h"
#include "thread_state.h"

#define TIMED_EXACT_ONE_IN 17 /* allocations; odd, since programs often repeat themselves in powers of two */
#define CYCLES_MAX (1u << 17) /* more is no work but a thread that was preempted meanwhile */

/* Who takes part in one recording. */
struct recorder {
	struct thread_state *thread; /* taken, or NULL */
	struct counter_row counters;
	uint64_t tp;
	uint64_t stamp;
	int fresh; /* nothing has been drawn for *thread: it stays ownerless */
};

static inline void recorder_open(struct recorder *r, const struct hook_call *call, uint64_t stamp)
{
	r->tp = arch_thread_pointer();
	r->thread = thread_state_acquire(r->tp, call->sp, &r->fresh);
	r->counters = counter_row(r->thread, r->tp);
	r->stamp = stamp;
	regions_refresh();
}

static inline void recorder_add_cycles(const struct counter_row *counters, uint64_t weight, uint64_t cycles)
{
	counter_add(counters, DUMP_COUNTER_slow_cycles, weight * (cycles < CYCLES_MAX ? cycles : CYCLES_MAX));
}

/* Reading the clock takes as long as walking five frames: where all is recorded, one of some is timed for the others.
 */
static inline void recorder_count_cycles(const struct recorder *r)
{
	uint64_t weight = 1;

	if (r->thread && r->thread->rate_bytes == 1) {
		weight = TIMED_EXACT_ONE_IN;
		if (++r->thread->samples % TIMED_EXACT_ONE_IN != 1)
			return;
	}
	recorder_add_cycles(&r->counters, weight, clock_stamp() - r->stamp);
}

static inline void recorder_leave(struct recorder *r)
{
	if (r->thread)
		thread_state_release(r->thread);
}

static inline void recorder_close(struct recorder *r)
{
	recorder_count_cycles(r);
	recorder_leave(r);
}

/* A taken record becomes history. A thread that only frees has no state of its own: any that is taken will do. */
static inline void recorder_finish(struct recorder *r, const struct live_entry *entry, uint16_t flags)
{
	if (r->thread)
		history_prefetch(r->thread); /* while the record comes */
	history_append(r->thread, &r->counters, entry->record, r->stamp, flags);
	live_table_drop(entry);
	counter_add(&r->counters,
	            flags & DUMP_HISTORY_FREE_MISSED ? DUMP_COUNTER_frees_missed : DUMP_COUNTER_samples_freed, 1);
}
