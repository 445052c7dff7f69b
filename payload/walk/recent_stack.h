/* SPDX-License-Identifier: MIT */
/*
 * The recent stack of a thread: the outer frames that its last walks had in common, so that the next walk need not find
 * them by rules again. unwind.c shows where it is used.
 *
 * Why it is valid. A walk finds a frame from its CFA, its return address, its frame pointer register, and the words of
 * the stack that the steps further out read. Where all those words are unchanged, a walk that arrives at the frame with
 * the same CFA, return address and frame pointer finds the same outer frames again. So the recent stack keeps, with its
 * frames, the words that they were made of. Before a walk those are compared with the stack as it is, from the
 * outermost frame inwards, up to the first that has changed. A walk that arrives at one of the frames outside of that
 * joins: it takes over the rest. A CFA that was itself read from memory would need more to be compared: the frames
 * inside of such a frame are not kept.
 *
 * What is kept. Each walk writes its own frames, those before it joins, to a list `fresh`. The outermost of them that
 * the walk before found at the same place are added to the frames kept. Where that would remove other frames (which are
 * out of date, or may come back), one more walk has to agree first. So inner frames that differ from walk to walk cost
 * no more than being walked, and a stack that has become deeper is known after two or three walks. Frames inside of
 * where a walk joins stay: they describe a stack that may come back.
 *
 * Layout. Frames and words are stored outermost first, so that the outer ones keep their place. The words have an array
 * of their own, so that four of them are compared with some twenty instructions: at --rate 1 this comparison is the
 * largest part of a walk. The words of a frame are stored once there are frames inside of it, since only those depend
 * on them.
 *
 * Only for intervals up to RECENT_RATE_MAX: at larger ones this memory would be cold. Only RECENT_STACKS threads have
 * one; it belongs to a thread state, and whoever takes that over may use it. Nothing in it is trusted: each address is
 * checked against the stack before it is read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/machine.h"
#include "payload.h"
#include "tables/stack_hash.h"

#define RECENT_STACKS 64u
/* 0, no thread has one, where the return address is at no fixed distance from the CFA: the words that are compared are
 * known for the others only. */
#define RECENT_RATE_MAX (ARCH_LINK_REGISTER ? 0u : 64u << 10)

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

/* A frame as the walk finds it. */
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
	uint32_t frame; /* number of the frame that was made of it: that and all outer ones do not depend on this word
	                   or any after it */
	uint64_t value;
};

#define RECENT_BYTES_MAX (8ull * INT32_MAX) /* of a stack: further words cannot be named */
#define RECENT_WORD_GROUP 4u                /* as many are compared at once */
#define RECENT_WORDS (2 * DUMP_FRAMES_MAX)

/* Whole pages, since they are given back that way. */
struct __attribute__((aligned(PAGE_BYTES))) recent_stack {
	uint64_t index;      /* offset of the unwind index that the frames were found with */
	uint64_t java_bytes; /* … and with which code heaps of HotSpot: 0, by frame pointers through Java code */
	uint64_t stack_end;  /* of the known stack that the frames are on */
	uint64_t stack_hash; /* of the whole stack as it was interned last, and its reference */
	uint32_t reference;
	uint32_t generation; /* of the index */
	uint32_t count;      /* frames 1 … count; 0: none */
	uint32_t word_count; /* a multiple of RECENT_WORD_GROUP: the last word is repeated as needed */
	uint16_t last_count; /* fresh frames of the walk before, 0: it had none */
	uint16_t sights;     /* walks in a row that had the outermost fresh frame in common with the one before */
	uint8_t last;        /* which of the two lists the walk before filled */
	bool ends;           /* by its rule frame 1 is the outermost, whatever the stack holds */
	bool used;           /* false: never */
	struct recent_frame frames[DUMP_FRAMES_MAX + 1]; /* frame 0 ends every search */
	/* The frame of the last word: the innermost that may be joined if none has changed. */
	struct recent_word words[RECENT_WORDS + 1];
	/* Innermost first: of this walk and of the one before, in turns. */
	struct fresh_frame fresh[2][DUMP_FRAMES_MAX];
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
 * A walk has put count fresh frames into the list before it joined at frame `held`, 0: it did not. That list becomes
 * the last one. Returns how many of them, from the outermost inwards, are to be kept.
 */
uint32_t recent_stack_look(struct recent_stack *recent, uint32_t count, uint32_t held);
/*
 * Adds the outermost `kept` of the last list after frames[1 … held]; recent_stack_forget() comes first. The frame
 * pointer of frames[held] was read at fp_below this time. held + kept is at most DUMP_FRAMES_MAX.
 */
void recent_stack_keep(struct recent_stack *recent, uint32_t kept, uint32_t held, uint32_t fp_below);
