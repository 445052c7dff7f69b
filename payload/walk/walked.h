/* SPDX-License-Identifier: MIT */
/*
 * What the last walk of a stack has read, whoever walked, for the next one to fetch ahead.
 *
 * Between two samples at a large rate the program has used the caches for itself: a walk would wait for one line after
 * another, since each frame's rule says where the next return address is. Stacks of one program share most of their
 * frames; so what was read last time, the entries of the cache of rules and the extent of the stack, is asked for all
 * at once. Nothing depends on what is here: an entry is only ever prefetched, which cannot fault.
 */
#pragma once

#include <stdint.h>

/* A walk from sp begins soon. */
void walked_prefetch(uint64_t sp);
/* A walk has found count frames, as dump_stack.frames, in so many bytes of stack. */
void walked_keep(const uint64_t *frames, uint32_t count, uint64_t bytes);
