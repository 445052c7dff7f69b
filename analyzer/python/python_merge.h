/* SPDX-License-Identifier: MIT */
/*
 * One stack of two lists: the native frames, in which CPython is its evaluator again and again, and the Python frames.
 *
 * A native frame of the evaluator runs one Python frame or more: from CPython 3.11 on a call from Python to Python does
 * not enter the evaluator again. The payload marks each Python frame for which it was entered (DUMP_PYTHON_ENTRY). So
 * the list of Python frames falls into groups, each up to and including a marked frame, and each belongs to one native
 * frame of the evaluator, in the same order.
 *
 * Which group belongs to which frame is certain where both lists are whole and as long as each other. Elsewhere:
 *
 *   The innermost native frame may have no Python frame: it was just entered, and its frame is being set up, or is gone
 *   already. So, where both lists are whole, they are laid beside each other from the outermost frame inward. The same
 *   where the Python frames are whole and fewer than the native ones, although the native ones end early: if all were
 *   there, there would be still more of them.
 *
 *   Where either list ends early (a walk that failed, more than are recorded), the outer ends do not correspond, and
 *   they are laid beside each other from the innermost frame outward. If the innermost native frame is one that is
 *   being set up, each group then stands one native frame too far in, but behind the same Python frames.
 *
 *   A thread may run one interpreter inside of another, and the list has the frames of one of them. Where the dump says
 *   that those further in may be missing (DUMP_STACK_PYTHON_INNER), native frames in excess are theirs, as it is
 * anyway. Where those further out may be missing (DUMP_STACK_PYTHON_OUTER) and there are native frames in excess, they
 * are laid from the innermost frame outward. The same where coroutines may use one stack in turns, as old versions of
 * greenlet let them (stack_base.h of the injector), and several are in excess for no other reason: what is further out
 * is that of others. Without coroutines those in excess are further in, as a thread that has released the lock does not
 * know which interpreter it runs.
 *
 * The groups replace their native frames. Nothing is invented where the lists do not fit:
 *
 *   native frames of the evaluator without a group stay as they are
 *   groups without a native frame stand, if the lists were laid from the outermost frame, with the innermost frame of
 *   the evaluator; else, or if there is none, after all native frames
 *
 * So Python frames are always all there, in their own order, and so are native frames.
 */
#pragma once

#include "dump/dump_reader.h"

#define PYTHON_MERGED_MAX (DUMP_FRAMES_MAX + DUMP_PYTHON_FRAMES_MAX)

struct merged_frame {
	uint64_t word; /* as in the dump */
	bool python;
};

struct merged_stack {
	struct merged_frame frames[PYTHON_MERGED_MAX]; /* innermost first */
	uint32_t count;
	bool fits; /* each group has its native frame, as far as both lists go, and at most one native frame has none */
	bool ends_early; /* outer Python frames are missing, although the list is whole */
};

/* Whether a native frame is in the evaluator. */
bool python_is_evaluator(const struct dump_header *header, uint64_t frame);

/* The native frames from the first on (those before it are the allocator's own), and all Python frames. coroutines:
 * that use one stack in turns may be among them. */
void python_merge(const struct dump_header *header, const struct dump_stack_copy *copy, uint32_t first, bool coroutines,
                  struct merged_stack *merged);
