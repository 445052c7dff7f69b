/* SPDX-License-Identifier: MIT */
/*
 * The filter of free: counts the sampled blocks by two hashes of their addresses.
 *
 *     first counter 0                 the block was not sampled: the free goes on (trampolines.S)
 *     … not 0, but the second is 0    the same (hooks.S)
 *     neither is 0                    it may have been sampled: the live table is searched
 *
 * A search in vain takes as many cycles as a tenth of a sample. The second counter, which is in the same cache line,
 * spares nearly all of these while there are few samples, and most when there are many. A counter that reaches 255
 * stays there, so the filter says "maybe" too often but never "no" wrongly.
 *
 * Where every allocation is recorded (FILTER_NONE) all counters are 255 from the start, and few, so that they cost no
 * cache misses.
 */
#ifndef MEMATTACH_PAYLOAD_FILTER_H
#define MEMATTACH_PAYLOAD_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "hook_call.h"
#include "payload.h"

#define FILTER_STICKY 255u

extern uint8_t *filter_counters HIDDEN;
extern uint32_t filter_mask HIDDEN;

/* So many counters, a power of two, all zero. At a multiple of FILTER_LINE_BYTES. They lie after the trampolines
 * (include/trampolines.h), which read them. */
void filter_init(uint8_t *counters, uint32_t count);
void filter_make_exact(void);
/* Whether it was made so. */
bool filter_is_exact(void);
void filter_add(uint64_t address);
void filter_remove(uint64_t address);
bool filter_maybe(uint64_t address);

#endif
