/* SPDX-License-Identifier: MIT */
/*
 * The named counters of the dump's header. The first rows are for all threads, which add to them atomically; each other
 * row belongs to one thread state, and whoever has taken that thread state adds to it by a plain load and store.
 */
#pragma once

#include "payload.h"
#include "thread_state.h"

#define COUNTER_ROWS_SHARED 4u

struct counter_row {
	uint64_t *words;
	uint32_t owned;
};

/* thread state is acquired, or NULL. */
static inline struct counter_row counter_row(const struct thread_state *thread, uint64_t tp)
{
	uint32_t row = thread ? thread->counter_row : 0;

	if (row && row < DUMP_COUNTER_SHARDS)
		return (struct counter_row){ .words = payload.dump->counters[row], .owned = 1 };
	return (struct counter_row){ .words = payload.dump->counters[thread_state_shard(tp)] };
}

static inline void counter_add(const struct counter_row *row, enum dump_counter counter, uint64_t n)
{
	uint64_t *word = &row->words[counter];

	if (row->owned)
		__atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
}
