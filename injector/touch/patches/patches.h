/* SPDX-License-Identifier: MIT */
/*
 * All that is changed of the program itself: GOT entries of allocation functions (word_patches.h), the first
 * instructions of such functions, and words of CPython (code_patches.h).
 *
 * Both happen from outside, while all threads stand still (still_moment.h): no thread uses a word or runs code that
 * changes under it, and the kernel's return to the program serialises each processor. memattach may die between any two
 * writes:
 *
 *   to patch     the lists, in the payload → islands → jumps at entries → words → GOT entries
 *   to restore   words → jumps at entries → GOT entries → the session is made inert → (no thread is at an island,
 * quiesce.h) → islands → (with the payload) the detours
 *
 * After each single write all is right: a jump at an entry leads to an island that is there, or to a detour that is
 * complete, and a word to a trampoline that is set. What is patched the code itself and the words tell, so whoever
 * comes later restores exactly that.
 *
 * A jump that displaces one instruction is right wherever a thread was. One that displaces several is not, for a thread
 * that is to go on in the middle of them: such a moment is not taken. To restore the entries needs no such look: nobody
 * has been in the middle since. But a thread may stand between two jumps, at an island, or come back there from a
 * signal handler. So islands stay until none can be there. A signal handler that left by swapcontext() while it
 * interrupted one of the displaced instructions, a span of some nanoseconds, is not seen.
 */
#pragma once

#include "touch/patches/code_patches.h"
#include "session/session.h"

/* Writes the jumps of session.hooks, which are listed, and the words of the plan of the view; the trampolines are set.
 * -EBUSY: no moment was found until the deadline; nothing is written then. */
int patches_write(struct session *s, uint64_t deadline_ns, struct err *e) WARN_UNUSED;
/* The same for the words of the plan alone; if it fails they are not listed either. */
int patches_write_words(struct session *s, uint64_t deadline_ns, struct err *e) WARN_UNUSED;

/* Before a detach: what is in the process but not in the table of changes was brought there by another memattach, or by
 * calls that ended late. */
void patches_adopt(struct session *s, bool recorded);
/* Takes back what the session in the target has changed, of this memattach or of one that died, and makes the session
 * inert: no new thread can enter a hook. */
int patches_restore(struct session *s, struct code_patches_result *result, struct err *e) WARN_UNUSED;
