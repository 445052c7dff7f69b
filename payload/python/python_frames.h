/* SPDX-License-Identifier: MIT */
/*
 * The Python frames of a sample: walked twice, and kept nowhere between.
 *
 * A stack that is known already, as nearly all are, needs no more than its hash, so the first walk makes that and
 * stores nothing: neither frames, which would take a large part of a small thread's stack, nor code objects. Only for
 * a stack that is new the frames are walked again, and their code objects stored. Between the two the thread is in the
 * same call of malloc; both walks see the same, and where they do not, the stack is given up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "walk/unwind.h"

/* Adds the frames of the calling thread to the hash and to the flags of its native stack. In a signal handler none are
 * read: they count as lost (python_walk.h). */
void python_frames_add(uint64_t thread_pointer, struct unwind_result *walked);
/* Stores the code objects of as many frames as walked->flags has, and fills python[] as dump_stack.frames. native: the
 * hash before the frames were added. False: no room for a code object, or they are not those of the hash. */
bool python_frames_store(uint64_t thread_pointer, uint64_t native, const struct unwind_result *walked,
                         uint64_t *python);
