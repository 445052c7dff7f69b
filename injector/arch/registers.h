/* SPDX-License-Identifier: MIT */
/* The registers of a stopped thread: struct registers is all that a tracer reads and writes, and only the machine's own
 * files look into it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/stub.h"
#include "process/blocked_call.h"
#if defined(__x86_64__)
#include "arch/x86_64/code_address.h"
#include "arch/x86_64/register_set.h"
#elif defined(__aarch64__)
#include "arch/aarch64/code_address.h"
#include "arch/aarch64/register_set.h"
#else
#error "memattach knows no registers of this architecture yet"
#endif

/*
 * Where the kernel does not show a tracer which call a stop has interrupted, what was seen before the stop tells it:
 * noted right before the thread is asked to stop. Else *before is left alone.
 */
void registers_before_stop(struct blocked_call *before, pid_t pid, pid_t tid);

/* Of a thread that the caller traces and that is stopped. before: NULL if it is not stopped in a call. False: errno
 * says why. */
bool registers_read(pid_t tid, const struct blocked_call *before, struct registers *regs);
bool registers_write(pid_t tid, const struct registers *regs);
/* The extended state of such a thread, vectors included, as the kernel shows it; how much it is, 0: it cannot be read.
 */
size_t registers_read_extended(pid_t tid, void *buffer, size_t bytes);

/* Bytes of the extended register state that the stub saves on this machine, UINT64_MAX if it cannot be told. */
uint64_t registers_extended_bytes(void);
/* What such a thread would lose by a call of ours; NULL: nothing. */
const char *registers_would_lose(pid_t tid);

/*
 * A system call that returned EINTR to a bare stop (epoll_wait, semop, sigtimedwait: signal(7)) is turned into one that
 * the kernel restarts unless a handler runs. Returns true if regs were changed: set them at once.
 */
bool registers_hide_interruption(struct registers *regs, const struct blocked_call *before);

/* Fills the registers of the stub's data, whose masks are there, or those of its frame, which is zeros: where the
 * thread goes on without a tracer. */
void registers_note(pid_t tid, const struct registers *regs, struct stub_data *data, struct stub_frame *frame);
/* Is the thread at the entry of the call by which the stub returns by the frame? */
bool registers_returns(const struct registers *regs);

/* Registers that start the stub: the same stack pointer, no system call to restart. */
struct registers registers_enter(const struct registers *regs, uint64_t stub);

/*
 * What the thread is to go on with, in a stop elsewhere in the kernel than where it was met. interrupted: a handler
 * runs first, and makes the call that it was stopped in return EINTR. Not needed, and *regs itself, where the kernel
 * decides that.
 */
struct registers registers_go_on(const struct registers *regs, bool interrupted);

/* The checkpoint at whose entry the thread is (STUB_CHECKPOINT_*), 0 if at none. *interrupted: what the stub says for
 * registers_go_on(). */
uint64_t registers_checkpoint(const struct registers *regs, bool *interrupted);

uint64_t registers_pc(const struct registers *regs);
uint64_t registers_sp(const struct registers *regs);
uint64_t registers_fp(const struct registers *regs);
/* The register that holds the return address of a function that has not saved it; 0: the machine has none. */
uint64_t registers_link(const struct registers *regs);
/* The thread pointer (base of the TLS block). */
uint64_t registers_tp(const struct registers *regs);
/* Is it in code of the width that ours has? */
bool registers_in_64_bit_code(const struct registers *regs);
/* The system call that the thread was stopped in, -1 if none. */
int64_t registers_syscall(const struct registers *regs);
/* The same, or the one that it has just made or is about to make, of a traced thread that stands still. Where the
 * kernel tells only of a thread that sleeps which call it is in, the code does. */
int64_t registers_at_call(pid_t tid, const struct registers *regs);
/* Was it stopped while it slept in a system call that signals interrupt? */
bool registers_sleeping(const struct registers *regs);
/* code_address(word): the address of code that a word of a stack or a register holds. */
/* Is the thread at the entry of openat()? Then *name is the address of the path. */
bool registers_opens(const struct registers *regs, uint64_t *name);
/* Makes another system call of the one at whose entry the thread is: fcntl(fd, F_DUPFD_CLOEXEC, 0). */
void registers_duplicate_instead(struct registers *regs, int fd);
/* At its exit: the argument registers as they were before, with the result of now. */
void registers_give_back_arguments(struct registers *regs, const struct registers *before);
/* Calls visit with the value of every general register. */
void registers_each(const struct registers *regs, void (*visit)(uint64_t value, void *data), void *data);
/* May these be the words that follow the program counter in the context of an interrupted thread (sigcontext)? */
#define REGISTERS_BEHIND_PC 3u
bool registers_follow_pc(const uint64_t words[REGISTERS_BEHIND_PC]);
