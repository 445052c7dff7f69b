/* SPDX-License-Identifier: MIT */
/* Walks a stack by the unwind tables. */
#pragma once

#include <stdint.h>

#include "dump_format.h"
#include "walk/rule_cache.h"

struct recent_stack;

/* Where a walk begins: sp points to the return address that is the first frame, fp is the register. */
struct unwind_start {
	uint64_t sp;
	uint64_t fp;
	uint64_t thread_pointer;
};

struct unwind_result {
	uint32_t count;
	uint32_t flags;         /* DUMP_STACK_… */
	uint32_t fallback;      /* frames that were found by frame pointer */
	uint32_t held;          /* the outermost of them, which were taken over from the recent stack */
	uint32_t signal_frames; /* signal handlers among them */
	uint64_t hash;          /* of all frames and flags, never 0 */
};

/*
 * Fills frames[DUMP_FRAMES_MAX] as dump_stack.frames. The frame of an interrupted instruction is stored as its address
 * + 1, so that a reader may look up address - 1 everywhere. With a recent stack the frames are left there:
 * unwind_frames_complete().
 */
void unwind_walk(const struct unwind_start *start, struct recent_stack *recent, uint64_t *frames,
                 struct unwind_result *result);
/* Stores the frames that unwind_walk() left in *recent alone, if there is one: not needed for a stack that is known
 * already. */
void unwind_frames_complete(const struct recent_stack *recent, const struct unwind_result *result, uint64_t *frames);
