/* SPDX-License-Identifier: MIT */
/*
 * One step of a walk: from a frame to its caller, and which words of the stack may be read for that.
 *
 * A walk must never read memory that is not mapped. It cannot ask the kernel, since a hook makes no system call; what
 * was mapped when memattach inspected the process may be gone; and a program may run on a stack of its own, next to
 * anything, with anything in the frame pointer. So a word is read only for one of three reasons:
 *
 * 1. It is on a known stack (known_stack.h): the main stack, or the one that the C library made for this thread. From a
 *    stack pointer in use up to their end these are mapped, whatever rules and registers say.
 * 2. It is in the same page as a word that is certain to be there: the return address of the innermost frame, which the
 *    call has just pushed, or any word that was read before.
 * 3. A rule from the tables names it, and a rule led to each frame inside of this one. The program itself reads that
 *    word when it returns from the frame: it is the return address or a saved register. This holds on any stack, and
 *    where frames lead from one stack to another.
 *
 * `stack_end` is the end of what may be read. On a known stack it is the end of that stack. On any other it is the end
 * of a page, and only walk_reach() moves it, for a word that a rule names. Two exceptions:
 *
 * - A step by frame pointer is a guess, in code without rules. It must lead to words that are certain already. After
 *   one on an unknown stack, no rule counts as a reason any more.
 * - A signal frame leads to a stack pointer that need not point to memory at all: the program may be handling the
 *   overflow of a stack. Nothing is certain there until a rule has led on from it.
 *
 * A rule may be wrong. On a known stack that gives a wrong frame, and never leads beyond the end. On another stack it
 * could: inline assembler that switches stacks always has such rules, since the compiler goes on counting from the
 * stack pointer. memattach knows that code by its instructions and compiles it to UNWIND_UNSUPPORTED. Besides, no rule
 * leads out of the memory range (in the index) that the stack was in.
 *
 * The CFA grows with each step. A frame that does not fit is STEP_LOST: the walk ends, marked as truncated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/machine.h"
#include "walk/known_stack.h"
#include "payload.h"
#include "walk/rule_cache.h"

/* A frame that the walk has arrived at. */
struct place {
	uint64_t pc; /* the return address, or the interrupted instruction + 1 */
	uint64_t sp;
	uint64_t fp;   /* the frame pointer register, FP_UNKNOWN: lost */
	uint64_t room; /* words from sp to the end of the stack */
};

#define FP_UNKNOWN 1u /* like every odd value it leads nowhere */

struct walk {
	struct unwind_view view; /* of the index, once it has been opened: walk_view() */
	struct place at;
	uint64_t index; /* offset of the index that this walk keeps to, 0: none */
	uint64_t salt;
	uint64_t stack_end; /* what lies between sp and here may be read */
	uint64_t thread_pointer;
	uint64_t java_frame; /* what the Java frame that was left last is recorded as */
	uint64_t java_bytes; /* java_walk_bytes() at the begin, of a walk that has a recent stack */
#if ARCH_LINK_REGISTER
	uint64_t link, link_sp; /* of code that a signal has interrupted, which has this stack pointer; 0: of none */
#endif
	uint32_t generation;
	uint32_t signal_frames;
	uint32_t fallback; /* steps by frame pointer */
	bool view_open;
	bool stack_known;  /* stack_end is the end of a known stack: nothing leads further */
	bool stack_left;   /* stack_end is another one than at the beginning */
	bool java;         /* it has gone through Java code, which more than the stack tells about */
	bool ends_by_rule; /* the outermost frame has no caller, by its rule */
};

enum step {
	STEP_ON,   /* arrived at a frame */
	STEP_END,  /* the frame was the outermost */
	STEP_LOST, /* it has a caller that cannot be found */
	STEP_SLOW, /* only of the walk (unwind.c): a frame for unwind_step() */
	STEP_JOIN, /* only of the walk: a frame of the recent stack */
};

/* Reads the target's stack: words that no C object of ours covers. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static inline uint64_t step_word(uint64_t address)
{
	return *(const volatile uint64_t *)address;
}

/* The index, opened when it is first needed: most walks that have a recent stack never do. */
static inline const struct unwind_view *walk_view(struct walk *w)
{
	if (!w->view_open) {
		unwind_view_open(&w->view, w->index);
		w->view_open = true;
	}
	return &w->view;
}

/* Sets the end of what may be read, given that the word at address may be. */
static inline void walk_set_end(struct walk *w, uint64_t address)
{
	w->stack_end = known_stack_end(address, w->thread_pointer);
	w->stack_known = w->stack_end != 0;
	if (UNLIKELY(!w->stack_known))
		w->stack_end = (address | (PAGE_BYTES - 1)) + 1;
	w->at.room = (w->stack_end - w->at.sp) / 8;
}

/* Is a CFA so many words above sp a valid one? One comparison for both: it grows, and its return address is on the
 * stack. */
static inline bool place_fits(const struct place *at, uint64_t words)
{
	return words - 1 < at->room;
}

/* Goes to the frame whose CFA, which is checked already, lies so many words above sp, and its return address, between
 * them, so many bytes below. */
static inline enum step step_to_below(struct place *at, uint64_t words, uint64_t fp, uint64_t below)
{
	at->sp += words * 8;
	at->room -= words;
	at->fp = fp;
	at->pc = arch_code_address(step_word(at->sp - below));
	return at->pc ? STEP_ON : STEP_END;
}

/* The same with the return address right below the CFA. */
static inline enum step step_to(struct place *at, uint64_t words, uint64_t fp)
{
	return step_to_below(at, words, fp, 8);
}

/*
 * Goes from the present frame, about which `found` was found (rule_cache.h), to its caller. STEP_ON, STEP_END or
 * STEP_LOST. *fp_below becomes where the caller's frame pointer was read, as in struct recent_frame; of a signal frame,
 * and where the walk ends, it means nothing and may stay as it was.
 */
enum step unwind_step(struct walk *w, uint64_t found, uint32_t *fp_below);
