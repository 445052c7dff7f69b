/* SPDX-License-Identifier: MIT */
/*
 * A thread of memattach that stops threads of the target, and ends when they have gone on.
 *
 * PTRACE_DETACH lets a thread go only out of a stop, and a thread that leaves a stop takes what signals wait for the
 * process at that moment. One that has just woken the first thread, for which the kernel has chosen it
 * (complete_signal(), kernel/signal.c), is then handled by another: a race that no order of the resumptions avoids, and
 * programs may count on the first thread. So nobody but the first thread is detached from a stop. The others are
 * resumed and stay traced until they were seen beyond the point where they take signals; what they have taken meanwhile
 * is handed back (hand_back.h). Then their tracer ends, and the kernel lets go of its tracees while they run. It also
 * takes back what a thread that did not stop was asked for.
 *
 * So each step that stops threads, from the first stop to the last resumption, is a call of tracer_run().
 */
#pragma once

#include <stdbool.h>

/*
 * Calls step(context) in a thread of its own and waits for it and for the end of that thread; returns what it returned.
 * Within such a step it is a mere call. So it is where no thread can be made: threads are then detached from their
 * stops.
 */
int tracer_run(int (*step)(void *context), void *context);
/* In such a thread? */
bool tracer_runs(void);
