/* SPDX-License-Identifier: MIT */
/*
 * One step of a walk through Java code of HotSpot, by the layout that memattach proved (java_layout.h). No call, no
 * lock, no system call; nothing of the Java heap or of metaspace is read.
 *
 * Why each read is of mapped memory.
 *
 * - The objects CodeHeap, which have the words `high`, and what code heaps and segmaps have reserved, are made when the
 *   VM starts and never given back: DestroyJavaVM leaves them, and libjvm itself is not read. What is committed grows
 *   and never shrinks. CodeHeap::expand_by commits memory before it moves `high`, first of the heap, then of the
 * segmap. So a segment below both ends has its byte, and what is below `high` can be read. A return address may be
 * anything, if the walk has gone wrong before: it is compared with both.
 * - The bytes of a segmap change while blocks are made and freed, under a lock that is not taken here. A byte that is
 *   too large leads below the heap, and ends the walk; one that is stale leads to another byte, or to a header whose
 *   words are those of other code: what is read then lies in the heap all the same, and the frame's size is checked
 *   like that of any other. Of code that the thread has a frame of, neither changes: the code is not freed while a
 *   frame is in it, also when it is deoptimised or its class unloaded, and headers are only written as blocks are made
 *   and freed. So bytes of a block in use always lead to its header.
 * - Where loads may come out of their order (aarch64) a byte that is read early, of a page that `high` says is there by
 *   now, faults at worst as the kernel has not yet shown the page to this processor: it looks, and has it read again.
 * - Words of the stack are read where walk_covers() of unwind_step.c lets a step by frame pointer read: on a known
 *   stack above the present frame, or in a page that is certain. A size or a sender that leads further ends the walk.
 *
 * Why the caller is right, whenever C code is called from Java code. Frames of compiled code and of stubs are complete
 * wherever they call, and so is that of the interpreter: it stores the sender before it enters a method. Deoptimised
 * code has its return address in the frame of its callee changed to a handler that lies in the same block, so its frame
 * is passed by the same size. An instruction that a signal has interrupted can be where a frame is half made, so
 * behind a signal frame the walk ends in Java code. Callers of a virtual thread's frames may lie on the Java heap: then
 * the return address leads to code of continuations, and the walk ends as well.
 *
 * What a frame is recorded as is made of words that are read for the same reasons: of a block's header, of the stack
 * above the stack pointer. A block that is no compiled method has anything where the compile_id would be; memattach
 * tells (injector/java/java_frame.h), and believes none of it.
 *
 * Only barriers of collectors in compiled code may save registers below the frame before they call: then a word of the
 * frame is taken for the return address. So behind Java code no rule makes more of an unknown stack readable
 * (walk_reach() of unwind_step.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "payload.h"

/* What a frame of Java code says of its caller. */
struct java_step {
	uint64_t sp;    /* of the caller, above the frame */
	uint64_t frame; /* what it is recorded as: dump_stack.frames */
	uint64_t link;  /* where the saved frame pointer is, and the return address behind it: on the stack below sp */
};

/* Of the code heaps' reservation; 0: Java code is not walked. Released last where memattach writes it later: who sees
 * it sees the rest. */
static inline uint64_t java_walk_bytes(void)
{
	return __atomic_load_n(&payload.java.bytes, __ATOMIC_ACQUIRE);
}

/* Is it in the code heaps' reservation? Never where Java code is not walked. */
static inline bool java_walk_holds(uint64_t pc)
{
	const uint64_t bytes = java_walk_bytes();

	return pc - payload.java.low < bytes;
}

/*
 * Of a frame whose pc is a return address; start and end: the words of the stack that may be read. False: nothing
 * tells, or it leads out of them.
 */
bool java_walk_step(uint64_t pc, uint64_t start, uint64_t end, uint64_t fp, struct java_step *step);
