/* SPDX-License-Identifier: MIT */
/*
 * The code in which a program that memattach starts waits at its entry (entry_hold.h): a copy of it, with struct
 * hold_data after it, in the padding behind the program's code. It ends by itself when its parent is not memattach any
 * more, and writes only below the stack pointer.
 *
 * This file is read by the assembler too.
 */
#pragma once

/* struct hold_data */
#define HD_ENTRY 0
#define HD_PAUSE 8 /* struct timespec */
#define HD_PARENT 24
#define HD_GO 28
#define HD_BYTES 32

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/registers.h"

struct hold_data {
	uint64_t entry; /* where it goes on */
	uint64_t pause_s, pause_ns;
	uint32_t parent; /* as getppid() tells it */
	uint32_t go;     /* not 0: go on */
};
_Static_assert(sizeof(struct hold_data) == HD_BYTES && offsetof(struct hold_data, parent) == HD_PARENT &&
                       offsetof(struct hold_data, entry) == HD_ENTRY && offsetof(struct hold_data, go) == HD_GO &&
                       offsetof(struct hold_data, pause_s) == HD_PAUSE,
               "hold_data");

extern const unsigned char hold_code[], hold_code_end[];

/*
 * Of a thread that waits in a copy of it: it shall go on at its entry as if it had never been there. pushed: the words
 * at its stack pointer, HOLD_PUSHED of them (register_set.h).
 */
void hold_stub_leave(struct registers *regs, uint64_t entry, const uint64_t pushed[HOLD_PUSHED]);
#endif
