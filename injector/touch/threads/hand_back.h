/* SPDX-License-Identifier: MIT */
/*
 * A signal for the process that a thread has taken because it left a stop, given to the first thread instead, which
 * the kernel had chosen and woken for it (tracer.h).
 *
 * For a signal that somebody else has caused nobody may make another one with the same words (rt_sigqueueinfo(2)). So
 * the first thread is sent one of ours, with a number that only we know; where it is about to be delivered its words
 * become those of the one that was taken (PTRACE_SETSIGINFO). If memattach dies meanwhile both are delivered.
 *
 * Which signals were for the process and not for that very thread is told by their origin: kill(2), timers, alarms,
 * children, message queues. Of sigqueue(3) and of files that tell of input (SIGIO) it is not known: they stay where
 * they are, as POSIX allows for all of them.
 */
#ifndef MEMATTACH_HAND_BACK_H
#define MEMATTACH_HAND_BACK_H

#include "touch/threads/tracee.h"

/* t is about to be given a signal, and no thread but the first one. True: that one has it, t is to go on without. */
bool hand_back(const struct tracee *t);

#endif
