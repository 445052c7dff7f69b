/* SPDX-License-Identifier: MIT */
/* What the kernel puts on a stack when it calls a signal handler, and leaves there when that has returned. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "process/target_read.h"

/*
 * Where the interrupted code's registers are, from the stack pointer on with which its handler has returned to
 * rt_sigreturn: SIGNAL_CONTEXT_FP, _SP, _PC, and _LINK where the machine has such a register, else 0.
 */
#if defined(__x86_64__)
#include "arch/x86_64/signal_context.h"
#elif defined(__aarch64__)
#include "arch/aarch64/signal_context.h"
#else
#error "memattach does not know the signal frames of this architecture yet"
#endif

/* Is there the call of rt_sigreturn at address, as the C libraries have it? */
bool signal_frame_is_return(const struct target_memory *memory, uint64_t address);
