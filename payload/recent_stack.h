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
 * The words stand in a list of their own, so that four of them are compared with some twenty instructions: where everything is recorded,
 * this comparison is the largest part of a walk.
 *
 * Frames stand outermost first, so that the outer ones stay in place. A walk writes its own frames to `fresh` and recent_stack_keep() puts
 * them behind those that it took over.
 *
 * Only for small sampling intervals: with large ones this memory would be cold. Only RECENT_STACKS threads have one. It belongs to a
 * thread slot, whoever has taken that slot may use it. Nothing here is trusted to be as it was written: each address is
 * checked against the stack before it is read.
 */
#ifndef MEMATTACH_PAYLOAD_RECENT_STACK_H
#define MEMATTACH_PAYLOAD_RECENT_STACK_H

#include <stdbool.h>
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
	uint16_t fallback; /* steps by frame pointer from this frame outwards */
	uint16_t word;     /* the first of its words */
};

/* A frame as the walk meets it. */
struct fresh_frame {
	uint64_t sp;
	uint64_t frame;
	uint64_t fp;
	uint32_t fp_below;
	uint32_t fallback; /* 1: the step from it was by frame pointer */
};

/* A word of the stack that a frame was made of: its return address, or where its frame pointer was saved. */
struct recent_word {
	int32_t at;     /* in words from the end of the stack: below 0 */
	uint32_t frame; /* whose it is: it and all outer frames do not depend on this word and those behind it, once one arrives there */
	uint64_t value;
};

#define RECENT_WORDS (2 * DUMP_FRAMES_MAX)

/* Whole pages, since they are given back that way. */
struct __attribute__((aligned(PAGE_BYTES))) recent_stack {
	uint64_t index;       /* offset of the unwind index that the frames were found with */
	uint64_t stack_start; /* of the range that is known to be one stack: stack_end if none is */
	uint64_t stack_end;
	uint64_t thread_pointer; /* of the thread that found it */
	uint64_t stack_hash;  /* of the whole stack as it was interned last, and its reference */
	uint32_t reference;
	uint32_t generation;  /* of the index */
	uint32_t count;       /* frames 1 … count; 0: none */
	uint32_t word_count;
	bool ends;            /* by its rule frame 1 is the outermost, whatever stands on the stack */
	bool used;            /* false: never */
	struct recent_frame frames[DUMP_FRAMES_MAX + 1]; /* frame 0 ends every search */
	struct recent_word words[RECENT_WORDS + 1];      /* the frame of the last one: the innermost that may be met if none has changed */
	struct fresh_frame fresh[DUMP_FRAMES_MAX];       /* innermost first */
};

#define RECENT_UNCHECKED UINT32_MAX /* fp_below: the frame depends on more than can be compared */

extern struct recent_stack recent_stacks[RECENT_STACKS] PAYLOAD_PAGES HIDDEN;

/* Forgets it. */
void recent_stack_forget(struct recent_stack *recent);
/* The step from frame 1 was by frame pointer now, or no longer: adds fallback to that of frames 1 … held. */
void recent_stack_correct(struct recent_stack *recent, uint32_t held, uint32_t fallback);
/* Puts count fresh frames behind frames[1 … held]. Both together are at most DUMP_FRAMES_MAX. */
void recent_stack_keep(struct recent_stack *recent, uint32_t count, uint32_t held);

#endif
