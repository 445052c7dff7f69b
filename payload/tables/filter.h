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
 * Every free reads a counter, and what it takes from the first cache the program has no longer. So the first counter
 * stands for a piece of memory, and pieces beside each other have counters beside each other: the index is the address
 * divided by the length of a piece, and begins anew after the last counter. A piece is about the rate / 121 long, so 1
 * in 121 holds a sampled block, and with the second counters 1 of 60 frees gets to hooks.S; at 512k a line serves
 * 270 KiB of heap, and a program that uses 15 MB of blocks at random reads 3.5 KiB of the filter. The second counter
 * tells the 64th parts of a piece apart. The length is no whole number, so that what lies at regular distances, pages
 * or arenas, does not meet in a few counters.
 *
 * Where every allocation is recorded (FILTER_NONE) all counters are 255 from the start, and few, so that they cost no
 * cache misses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "hook_call.h"
#include "payload.h"

#define FILTER_STICKY 255u
/* Of the multipliers: 2^FILTER_SHIFT divided by the length of a piece. The finest is that of a rate of
 * FILTER_FINEST_RATE or less. */
#define FILTER_FINEST 0x1E3779B9u
#define FILTER_FINEST_RATE 64u
#define FILTER_COARSEST 0x1001u

extern uint8_t *filter_counters HIDDEN;
extern uint32_t filter_mask HIDDEN;
extern uint32_t filter_multiplier HIDDEN;

/* So many counters, a power of two, all zero. At a multiple of FILTER_LINE_BYTES. They lie after the trampolines
 * (include/trampolines.h), which read them. rate_bytes: the least that the session will have. */
void filter_init(uint8_t *counters, uint32_t count, uint64_t rate_bytes);
void filter_make_exact(void);
/* Whether it was made so. */
bool filter_is_exact(void);
void filter_add(uint64_t address);
void filter_remove(uint64_t address);
bool filter_maybe(uint64_t address);
