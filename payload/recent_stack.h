/* SPDX-License-Identifier: MIT */
/*
 * The stack that a thread was sampled with last.
 *
 * Stacks that follow each other share their outer frames. A frame is determined by its CFA, return address and frame pointer,
 * together with the words that the walk read from the stack beyond it. So before a walk the words that the recent frames were made
 * of, which do not depend on each other, are compared with the stack as it is, from the outermost frame inwards as far as they are
 * unchanged; a walk that arrives at one of these frames need not go on by rules and takes over the rest. Only a frame whose CFA itself
 * was read from memory ends that.
 *
 * Frames stand outermost last, up to the end of the array, so that the outer ones stay in place. A walk writes its own frames to
 * `fresh` and recent_stack_keep() puts them in front of those that it took over.
 *
 * Only for small sampling intervals: with large ones this memory would be cold. Only RECENT_STACKS threads have one. It belongs to a
 * thread slot, whoever has taken that slot may use it. Nothing here is trusted to be as it was written: each address is
 * checked against the stack before it is read.
 */
#ifndef MEMATTACH_PAYLOAD_RECENT_STACK_H
#define MEMATTACH_PAYLOAD_RECENT_STACK_H

#include <stdint.h>

#include "payload.h"
#include "stack_hash.h"

#define RECENT_STACKS 64u
#define RECENT_RATE_MAX (64u << 10)

struct recent_frame {
	uint64_t sp;       /* CFA of its callee: the return address is the word below */
	uint64_t frame;    /* as in dump_stack.frames */
	uint64_t fp;       /* frame pointer register in this frame */
	uint64_t hash;     /* stack_hash of this frame and all outer ones */
	uint32_t fp_below; /* fp was read at sp - fp_below; 0: not read, as in the callee or unknown */
	uint32_t fallback; /* steps by frame pointer from this frame outwards */
};

/* Whole pages, since they are given back that way. */
struct __attribute__((aligned(PAGE_BYTES))) recent_stack {
	uint32_t generation; /* of the index that the frames were found with */
	uint32_t first;      /* innermost frame; DUMP_FRAMES_MAX: none */
	uint64_t stack_end;
	uint64_t stack_hash; /* of the whole stack as it was interned last, and its reference */
	uint32_t reference;
	uint32_t used;       /* 0: never */
	struct recent_frame frames[DUMP_FRAMES_MAX + 1]; /* one more: ends every search */
	struct recent_frame fresh[DUMP_FRAMES_MAX];
};

#define RECENT_UNCHECKED UINT32_MAX /* fp_below: the frame depends on more than can be compared */

extern struct recent_stack recent_stacks[RECENT_STACKS] PAYLOAD_PAGES HIDDEN;

/* Forgets it. */
void recent_stack_forget(struct recent_stack *recent);
/* Puts count fresh frames in front of frames[from …]. Both together are at most DUMP_FRAMES_MAX. */
void recent_stack_keep(struct recent_stack *recent, uint32_t count, uint32_t from);

#endif
