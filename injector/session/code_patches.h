/* SPDX-License-Identifier: MIT */
/*
 * The jumps at the entries of allocation functions, written and taken back.
 *
 * Both happen from outside, while all threads are stopped (stop_all.h): no thread runs code that changes under it, and
 * the kernel's return to the program serialises each processor. memattach may die between any two writes:
 *
 *   to patch     the rows of the list, in the payload → islands → jumps at entries
 *   to restore   jumps at entries → (no thread is at an island, quiesce.h) → islands → (with the payload) the detours
 *
 * After each single write the code is right: a jump at an entry leads to an island that is there, or to a detour that
 * is complete. What is patched the code itself tells, so whoever comes later restores exactly that.
 *
 * A jump that displaces one instruction is right wherever a thread was. One that displaces several is not, for a thread
 * that is to go on in the middle of them: whose program counter is there, or whose signal handler returns there. All
 * stacks are walked for that; if one is found, or a stack cannot be walked to its end and a word of it looks like it,
 * all threads run again and another moment is tried. To restore the entries needs no such look: nobody has been in the
 * middle since. But a thread may stand between two jumps, at an island, or come back there from a signal handler. So
 * islands stay until none can be there: no stop of all threads is needed then.
 *
 * Processes that run in this memory and are no threads are waited for: they are not stopped. A signal handler that left
 * by swapcontext() while it interrupted one of the displaced instructions, a span of some nanoseconds, is not seen.
 */
#ifndef MEMATTACH_CODE_PATCHES_H
#define MEMATTACH_CODE_PATCHES_H

#include "quiesce.h"
#include "session.h"

/* Before anything is done to the process: waits while a process runs in its memory that is no thread, which would keep
 * the jumps from being written, and the payload from being taken out again. -EBUSY: until the deadline. */
int code_patches_foresee(const struct session *s, uint64_t deadline_ns, struct err *e) WARN_UNUSED;

/* Writes the jumps of session.hooks, whose detours are mapped. -EBUSY: no moment was found until the deadline; nothing
 * is written then. */
int code_patches_write(struct session *s, uint64_t deadline_ns, struct err *e) WARN_UNUSED;

struct code_patches_result {
	unsigned written;  /* jumps that were there */
	unsigned restored; /* functions whose entry is as it was before */
	unsigned foreign;  /* somebody else has changed it since: left alone, and what it may lead to must stay */
};

/* Takes back the jumps at entries of the session in the target, of this memattach or of one that died. */
int code_patches_restore(struct session *s, struct code_patches_result *result, struct err *e) WARN_UNUSED;

/* Where the islands are that hold their jump: at most max, SESSION_CODE_PATCH_MAX is enough. */
unsigned code_patches_islands(const struct session *s, struct quiesce_range *ranges, unsigned max);
/* Takes them back. No jump leads there and no thread is there. */
int code_patches_remove_islands(const struct session *s, struct err *e) WARN_UNUSED;

#endif
