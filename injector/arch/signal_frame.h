/* SPDX-License-Identifier: MIT */
/* What the kernel puts on a stack when it calls a signal handler, and leaves there when that has returned. */
#ifndef MEMATTACH_SIGNAL_FRAME_H
#define MEMATTACH_SIGNAL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "process/target_memory.h"

/* Where the interrupted code's registers are, from the stack pointer on with which its handler has returned to
 * rt_sigreturn: struct ucontext. */
#define SIGNAL_CONTEXT_FP (40 + 8 * 10)
#define SIGNAL_CONTEXT_SP (40 + 8 * 15)
#define SIGNAL_CONTEXT_PC (40 + 8 * 16)

/* Is there the call of rt_sigreturn at address, as the C libraries have it? */
bool signal_frame_is_return(const struct target_memory *memory, uint64_t address);

#endif
