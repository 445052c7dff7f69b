/* SPDX-License-Identifier: MIT */
/* The named counters of the dump's header: each thread adds to the row of its shard. */
#ifndef MEMATTACH_PAYLOAD_COUNTERS_H
#define MEMATTACH_PAYLOAD_COUNTERS_H

#include "payload.h"
#include "thread_slot.h"

static inline void counter_add(uint32_t shard, enum dump_counter counter, uint64_t n)
{
	__atomic_fetch_add(&payload.dump->counters[shard][counter], n, __ATOMIC_RELAXED);
}

#endif
