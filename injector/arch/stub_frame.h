/* SPDX-License-Identifier: MIT */
/* The frame of the stub (arch/stub.h): what it takes, and what a stopped thread has that goes into it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/registers.h"

/* Bytes of it: of most threads, and of any with registers of the length that is usual on this machine. */
uint64_t stub_frame_least(void);
uint64_t stub_frame_usual(void);
/*
 * Fills what is behind the general registers in the frame, which is zeros: vectors, and whatever else the return by it
 * sets or would spoil. *frame_bytes: what the frame takes; beyond stub_frame_least() it has what only the kernel gives
 * back, so the thread is to be let run to its return by the frame in any case; beyond the structure it is not filled.
 * False: errno says why.
 */
bool stub_frame_note(pid_t tid, const struct registers *regs, struct stub_frame *frame, uint64_t *frame_bytes);
/* Vector registers as they were noted, for a thread that is back from the stub. False: errno says why. */
bool stub_frame_give_vectors_back(pid_t tid, const struct stub_frame *frame);
