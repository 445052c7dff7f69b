/* SPDX-License-Identifier: MIT */
/*
 * Proves on the running process that a CPython has its structures where its version's headers put them, before anything
 * is built upon that.
 *
 * The frames of every thread are walked by reading memory: thread states must form lists that belong to their
 * interpreters, each code object must have the code type, names and files must be str, each instruction must lie in its
 * code and have a line in the table. At least one frame must have been seen. One failure, and nothing is proved.
 *
 * The process runs meanwhile. So a thread that fails is looked at again: if it fails each time in the same place, the
 * layout is wrong; if in different ones, or if it is gone, the thread moves, and it proves nothing either way. Neither
 * does the state of a thread that has ended without it (pthread_exit below Python frames).
 *
 * A process may hold anything at all there. Each read is checked, chains and lists have limits, and all work
 * is charged to one budget. A process that imitates an interpreter has its imitation shown, no more.
 *
 * For a walk from inside (include/python_layout.h) the way to a thread's own state is proved as well: for each thread
 * the value of the key must be one of the thread states. It need not be the thread's only one, nor name that thread:
 * the state of a subinterpreter of 3.12 is that of the thread which made it, whichever runs it. Where the state that a
 * thread works with can be found (python_attached.h), what is there must be 0 or one of the thread states too, and one
 * that names the thread in 3.13 and later. If it is not so, the key alone is used.
 */
#pragma once

#include "python/python_attached.h"
#include "python/python_find.h"
#include "process/shown_frames.h"

#define PYTHON_PROOF_BYTES (64ull << 20) /* budget */
#define PYTHON_PROOF_WORK (1ull << 30)   /* bytes that are read: about a second */
#define PYTHON_LOOKS 8u                  /* an eighth of a second */
#define PYTHON_PLACES_MAX 64u            /* frames of a thread whose text is kept */

struct python_thread {
	struct python_state state;
	int32_t tid;   /* as the target sees it; 0: not known */
	bool owned;    /* a thread's key leads to it: tid is that thread; else it is the one that the state names */
	bool attached; /* a thread worked with it, the one of tid */
	bool moved;    /* it changed under each look; what follows is empty */
	bool truncated;
	uint32_t frames;
	struct shown_frame *places; /* innermost first */
	uint32_t place_count;
};

struct python_proof {
	struct python_runtime runtime;
	bool frames_proved;
	char frames_why[480]; /* if not */
	bool idle;            /* … because no thread runs Python code now, or there is none yet */
	bool key_proved;
	char key_why[480];
	char attached_why[480]; /* "": the state that a thread works with is found; also if the key is not proved */
	struct python_layout layout; /* filled in if both are proved */
	struct python_thread *threads;
	size_t thread_count;
	uint32_t interpreters;
	uint64_t frames;
	uint32_t moved;
	uint32_t own;      /* threads whose key leads to their state */
	uint32_t attached; /* threads that worked with a state when they were looked at */
};

/*
 * Never fails: what does not succeed is a reason. tm is read with a budget of its own. What is not right is looked at
 * so often, at least once; the pauses between double. python_proof_done afterwards.
 */
void python_proof_make(struct python_proof *p, const struct python_runtime *runtime, const struct modules *modules,
                       const struct maps *maps, const struct target_memory *tm, unsigned looks);
void python_proof_done(struct python_proof *p);
