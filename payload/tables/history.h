/* SPDX-License-Identifier: MIT */
/* The history of finished allocations: blocks of 4 KiB out of the dump's ring, each filled by one thread. */
#pragma once

#include <stdint.h>

#include "tables/counters.h"
#include "dump_format.h"
#include "thread_state.h"

/* thread state, acquired, will be appended to soon. */
void history_prefetch(const struct thread_state *thread);
/* Appends what became of *record. thread state is acquired, or NULL: then the record is counted as lost. */
void history_append(struct thread_state *thread, const struct counter_row *counters,
                    const struct dump_live_record *record, uint64_t stamp, uint16_t flags);
