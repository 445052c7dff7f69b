/* SPDX-License-Identifier: MIT */
/*
 * Is a stopped thread one that can run code of ours at all? It has to be a thread of the C library in the program's
 * ordinary code. Not
 *
 *   - one in 32-bit code (Wine, DOSEMU): the stub would run as other instructions;
 *   - one with syscall user dispatch (Wine): its system calls are signals. Kernels before 6.4 do not tell; there a
 * program that handles SIGSYS is refused;
 *   - one that the C library does not know (made by clone(2), with a thread pointer of its own, that of another thread,
 * or none): functions that are called on it find other data where theirs should be. A thread of glibc or musl has at
 * its thread pointer the address of that place, and behind it its own number. Only the first thread may lack the
 * number, if the process was made by a bare clone or fork system call.
 *
 * A thread in a signal handler is one, too, but who has interrupted it may be in the middle of anything: safe_point.h.
 */
#pragma once

#include "elf/libc.h"
#include "touch/threads/tracee.h"

/* 0, or -EBUSY with the reason. */
int plain_thread_check(struct tracee *t, const struct registers *regs, enum libc_kind kind,
                       const struct target_memory *memory, struct err *e) WARN_UNUSED;
