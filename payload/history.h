/* SPDX-License-Identifier: MIT */
/* The history of finished allocations: blocks of 4 KiB out of the dump's ring, each filled by one thread. */
#ifndef MEMATTACH_PAYLOAD_HISTORY_H
#define MEMATTACH_PAYLOAD_HISTORY_H

#include <stdint.h>

#include "counters.h"
#include "dump_format.h"
#include "thread_slot.h"

/* slot, acquired, will be appended to soon. */
void history_prefetch(const struct thread_slot *slot);
/* Appends what became of *record. slot is acquired, or NULL: then the record is counted as lost. */
void history_append(struct thread_slot *slot, const struct counter_row *counters, const struct dump_live_record *record,
                    uint64_t stamp, uint16_t flags);

#endif
