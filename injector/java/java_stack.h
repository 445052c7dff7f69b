/* SPDX-License-Identifier: MIT */
/*
 * The threads of HotSpot and the Java frames of each, read from outside while they run.
 *
 * A thread that has left Java code, for a native method, the VM or to wait, notes where in its anchor
 * (JavaFrameAnchor): from there its frames are walked without a look at its registers. What calls Java code again has
 * kept the anchor of before in its JavaCallWrapper, and so the walk goes on over native frames. A thread that runs Java
 * code now has no anchor, and none that has no Java frames has one.
 *
 * Errors as in java_code.h.
 */
#pragma once

#include "java/java_code.h"

#define JAVA_THREADS_MAX 32768u
#define JAVA_DEPTH_MAX 4096u /* frames of a thread; -Xss allows more */

struct java_anchor {
	uint64_t sp, pc, fp; /* sp 0: none; pc 0: the word below sp */
};

struct java_thread {
	uint64_t address; /* of its JavaThread */
	int32_t tid;      /* as the target sees it */
	uint64_t stack, stack_end;
};

/* *list is malloc'ed, NULL if there are none. */
int java_threads_read(struct java_view *v, struct java_thread **list, size_t *count, struct err *e) WARN_UNUSED;
int java_anchor_read(struct java_view *v, const struct java_thread *t, struct java_anchor *anchor,
                     struct err *e) WARN_UNUSED;

struct java_frame {
	struct java_point point;
	enum java_code_kind kind; /* of the code: the interpreter, compiled, or the wrapper of a native method */
	bool inlined;
};

/* Called for each, innermost first, until it returns something else than 0. */
typedef int (*java_frame_fn)(void *context, const struct java_frame *frame, struct err *e);

struct java_walk_end {
	bool truncated; /* there are more than JAVA_DEPTH_MAX frames */
	bool on_heap;   /* the callers of a virtual thread's frames are on the Java heap */
};

/* From an anchor that has a stack pointer to the thread's first frame. */
int java_stack_walk(struct java_view *v, const struct java_thread *t, const struct java_anchor *anchor,
                    java_frame_fn fn, void *context, struct java_walk_end *end, struct err *e) WARN_UNUSED;
