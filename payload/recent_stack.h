/* SPDX-License-Identifier: MIT */
/*
 * The outer frames that the stacks of a thread have in common.
 *
 * Stacks that follow each other share their outer frames. A frame is determined by its CFA, return address and frame
 * pointer, together with the words that the walk read from the stack beyond it. So before a walk the words that the
 * frames held here were made of, which do not depend on each other, are compared with the stack as it is, from the
 * outermost frame inwards as far as they are unchanged; a walk that arrives at one of these frames need not go on by
 * rules and takes over the rest. Only a frame whose CFA itself was read from memory ends that. The frames inside of
 * where a walk arrives stay as they are: they describe a stack that may come back.
 *
 * Held is only what was met twice. A walk writes its own frames to a list, `fresh`, and only adds them to the hash of
 * the stack. Those that the walk before it had met at the same place are put behind the frames that it took over; where
 * that takes others away, which are stale or the stack's own at other times, only after one more walk. So inner frames
 * that differ from walk to walk cost no more than being walked, and a stack that has become deeper is known after two
 * or three walks. Which frames are held is a matter of time alone: they are those of the walk that puts them there,
 * with the words that it read.
 *
 * The words stand in a list of their own, so that four of them are compared with some twenty instructions: where
 * everything is recorded, this comparison is the largest part of a walk. A frame's words are in it once there are
 * frames inside of it. Frames and words stand outermost first, so that the outer ones stay in place.
 *
 * Only for small sampling intervals: with large ones this memory would be cold. Only RECENT_STACKS threads have one. It
 * belongs to a thread slot, whoever has taken that slot may use it. Nothing here is trusted to be as it was written:
 * each address is checked against the stack before it is read.
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
	uint64_t power;    /* of STACK_HASH_P, for the frames inside of it */
	uint32_t fp_below; /* fp was read at sp - fp_below; 0: not read, as in the callee or unknown. Of the innermost:
	                      not known yet */
	uint16_t fallback; /* steps by frame pointer from this frame outwards */
	uint16_t word;     /* where its words begin */
};

/* A frame as the walk meets it. */
struct fresh_frame {
	uint64_t sp;
	uint64_t frame;
	uint64_t fp;
	uint64_t fp_below; /* and FRESH_FALLBACK */
};

#define FRESH_FALLBACK (1ull << 32) /* the step from this frame was by frame pointer */

/* A word of the stack that a frame was made of: its return address, or where its frame pointer was saved. */
struct recent_word {
	int32_t at;     /* in words from the end of the stack: below 0 */
	uint32_t frame; /* whose it is: it and all outer frames do not depend on this word and those behind it, once one
	                   arrives there */
	uint64_t value;
};

#define RECENT_BYTES_MAX (8ull * INT32_MAX) /* of a stack: further words cannot be named */
#define RECENT_WORD_GROUP 4u                /* as many are compared at once */
#define RECENT_WORDS (2 * DUMP_FRAMES_MAX)

/* Whole pages, since they are given back that way. */
struct __attribute__((aligned(PAGE_BYTES))) recent_stack {
	uint64_t index;      /* offset of the unwind index that the frames were found with */
	uint64_t stack_end;  /* of the known stack that they are on */
	uint64_t stack_hash; /* of the whole stack as it was interned last, and its reference */
	uint32_t reference;
	uint32_t generation; /* of the index */
	uint32_t count;      /* frames 1 … count; 0: none */
	uint32_t word_count; /* a multiple of RECENT_WORD_GROUP: the last one may stand there repeatedly */
	uint16_t last_count; /* fresh frames of the walk before, 0: it had none */
	uint16_t sights;     /* walks in a row that had the outermost fresh frame in common with the one before */
	uint8_t last;        /* which of the lists the fresh frames of the walk before stand in */
	bool ends;           /* by its rule frame 1 is the outermost, whatever stands on the stack */
	bool used;           /* false: never */
	struct recent_frame frames[DUMP_FRAMES_MAX + 1]; /* frame 0 ends every search */
	struct recent_word words[RECENT_WORDS +
	                         1]; /* the frame of the last one: the innermost that may be met if none has changed */
	struct fresh_frame fresh[2]
				[DUMP_FRAMES_MAX]; /* innermost first: of this walk and of the one before, in turns */
};

#define RECENT_UNCHECKED UINT32_MAX /* fp_below: the frame depends on more than can be compared */

extern struct recent_stack recent_stacks[RECENT_STACKS] PAYLOAD_PAGES HIDDEN;

/* Forgets the frames. */
void recent_stack_forget(struct recent_stack *recent);
/* The step from frame 1 was by frame pointer now, or no longer: adds fallback to that of all frames. */
void recent_stack_correct(struct recent_stack *recent, uint32_t fallback);
/* The list for the frames of a walk. */
static inline struct fresh_frame *recent_stack_list(struct recent_stack *recent)
{
	return recent->fresh[!(recent->last % 2)];
}
/*
 * A walk has put count fresh frames into the list before it met frame `held`, 0: none. That list becomes the last one.
 * Returns how many of them, from the outermost inwards, are to be kept.
 */
uint32_t recent_stack_look(struct recent_stack *recent, uint32_t count, uint32_t held);
/*
 * Puts the outermost `kept` of the last list behind frames[1 … held], after recent_stack_forget(). The frame pointer of
 * the last of those was read at fp_below this time. Both together are at most DUMP_FRAMES_MAX.
 */
void recent_stack_keep(struct recent_stack *recent, uint32_t kept, uint32_t held, uint32_t fp_below);

#endif
