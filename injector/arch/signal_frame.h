/* SPDX-License-Identifier: MIT */
/* What the kernel puts on a stack when it calls a signal handler, and leaves there when that has returned. */
#ifndef MEMATTACH_SIGNAL_FRAME_H
#define MEMATTACH_SIGNAL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "target_memory.h"

struct signal_frame {
	uint64_t address;                /* lowest: the handler's return address */
	uint64_t stack_start, stack_end; /* of the alternate stack that it is on, by its own account */
};

/*
 * Is the word at address a saved register in a signal frame on an alternate stack? Only where everything fits: the
 * place in the frame, the return to rt_sigreturn, the code segment, and a stack that holds the frame. Not for a stack
 * with SS_AUTODISARM: such a handler may have been left without returning, to be gone on with later.
 */
bool signal_frame_around(const struct target_memory *memory, uint64_t address, struct signal_frame *frame);

#endif
