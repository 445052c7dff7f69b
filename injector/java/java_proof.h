/* SPDX-License-Identifier: MIT */
/*
 * Proves on the running process that a HotSpot has its structures where its tables and java_structures.h put them,
 * before anything is built upon that, in two ways that need each other's structures:
 *
 * - The compiled code in its code heaps: each instruction that has debug information must lead to methods that their
 *   classes have, at a bytecode that is theirs. Some instructions of each piece of code, of so many pieces. Most pieces
 *   have such instructions, and begin by making a frame of the size that is noted of them: so this does not depend on
 *   whether a thread happens to rest in compiled code.
 * - The stacks of its threads: each that has an anchor is walked to the thread's first frame, and each frame must have
 *   such a method with a name, a file, and a line in the method's table. At least one frame must have been seen, and
 *   some thread must have the number of one of the process.
 *
 * One failure, and nothing is proved. The process runs meanwhile: what fails is looked at again, and if it fails each
 * time in the same way while the thread has not moved, or the code is still there, the layout is wrong. All work is
 * charged to one budget, and what imitates a HotSpot has its imitation shown, no more.
 */
#pragma once

#include "java/java_find.h"
#include "java/java_inside.h"
#include "java/java_method.h"
#include "java/java_stack.h"
#include "process/shown_frames.h"

#define JAVA_PROOF_BYTES (64ull << 20) /* budget */
#define JAVA_PROOF_WORK (1ull << 30)
#define JAVA_LOOKS 8u
#define JAVA_PLACES_MAX 64u /* frames of a thread whose text is kept */
#define JAVA_CODES_MAX 256u /* pieces of compiled code that are looked at, in each heap */

struct java_stack {
	struct java_thread thread;
	bool running; /* it has no anchor: it runs Java code, or has none */
	bool moved;   /* it changed under each look */
	struct java_walk_end end;
	uint32_t frames;
	struct shown_frame *places; /* innermost first */
	uint32_t place_count;
};

struct java_proof {
	bool proved;
	char why[480];             /* if not */
	struct java_layout layout; /* bytes 0: walks inside of the process would not find their way */
	struct java_view view;     /* budget and maps are gone after the proof */
	struct java_stack *stacks;
	size_t stack_count;
	uint32_t walked, running, moved;
	uint64_t frames;
	uint32_t codes;  /* pieces of compiled code that were looked at */
	uint64_t points; /* … and places in methods that they led to */
};

/*
 * Never fails: what does not succeed is a reason. tm is read with a budget of its own. java_proof_done afterwards. For
 * tests, java_proof_make_with() takes the structures as they are given.
 */
void java_proof_make(struct java_proof *p, const struct java_runtime *r, const struct maps *maps,
                     const struct target_memory *tm, unsigned looks);
void java_proof_make_with(struct java_proof *p, const struct java_structures *s, const struct maps *maps,
                          const struct target_memory *tm, unsigned looks);
void java_proof_done(struct java_proof *p);
