/* SPDX-License-Identifier: MIT */
/*
 * The filter of free: how many sampled blocks there are by two hashes of their addresses. gates.S reads the first
 * counter for each free, hooks.S the second if that is not 0, and if either is, the block was not sampled. Both are in
 * one cache line: of a few samples the second spares nearly all frees of like hash, whose look into the table would
 * take as many cycles as a tenth of a sample, and of others still most. A counter that reaches 255 stays there: it may
 * only ever say "maybe" too often. Where every allocation will be recorded (FILTER_NONE) all counters are 255 from the
 * start, and few: they spare nothing, and shall not cost cache misses.
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

/* So many counters, a power of two, all zero. At a multiple of FILTER_LINE_BYTES. They lie behind the gates
 * (include/gates.h), which read them. */
void filter_init(uint8_t *counters, uint32_t count);
void filter_make_exact(void);
/* Whether it was made so. */
bool filter_is_exact(void);
void filter_add(uint64_t address);
void filter_remove(uint64_t address);
bool filter_maybe(uint64_t address);

#endif
