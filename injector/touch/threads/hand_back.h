/* SPDX-License-Identifier: MIT */
/*
 * A signal for the process that a thread has taken because it left a stop, given to the first thread instead, which
 * the kernel had chosen and woken for it (tracer.h).
 *
 * Who is not the process itself may send with these words only what has a negative code, as timers and message queues
 * (rt_tgsigqueueinfo(2)). Another one is sent as if it were of sigqueue(3), with a number that only we know in
 * si_errno; where it is about to be delivered, its words become those of the one that was taken (PTRACE_SETSIGINFO). If
 * memattach dies meanwhile both are delivered; if the first thread does not come for long, it sees SI_QUEUE and that
 * number.
 *
 * Only signals that were for the process, and that the kernel gives to the first thread, are handed back: of kill(2),
 * alarms, timers of clocks that run by themselves, children, message queues, the terminal. What the thread has caused
 * itself, signals by CPU time, of sigqueue(3) and of files (SIGIO) stay where they are, as POSIX allows for all of
 * them. So do those without a handler: what they do they do to the whole process.
 */
#pragma once

#include "touch/threads/tracee.h"

/* t is about to be given its signal. True: the first thread, which is another one, has it, and t is to go on without.
 */
bool hand_back(const struct tracee *t);
