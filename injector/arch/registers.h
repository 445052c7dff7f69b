/* SPDX-License-Identifier: MIT */
/* What the injector must know about the registers of a stopped thread. One implementation for each architecture. */
#ifndef MEMATTACH_REGISTERS_H
#define MEMATTACH_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#include "arch/stub.h"

/* Bytes of the extended register state that XSAVE may write on this machine, 0 if it cannot be told. */
uint64_t registers_extended_bytes(void);

/*
 * A system call that returned EINTR to a bare stop (epoll_wait, semop, sigtimedwait: signal(7)) is turned into one that
 * the kernel restarts unless a handler runs. Returns true if regs were changed: set them at once.
 */
bool registers_hide_interruption(struct user_regs_struct *regs);

/* Fills the registers of the stub's data: where the thread goes on without a tracer. */
void registers_note(const struct user_regs_struct *regs, struct stub_data *data);

/* Registers that start the stub: the same stack pointer, no system call to restart. */
struct user_regs_struct registers_enter(const struct user_regs_struct *regs, uint64_t stub);

/* The checkpoint at whose entry the thread is (STUB_CHECKPOINT_*), 0 if at none. */
uint64_t registers_checkpoint(const struct user_regs_struct *regs);

uint64_t registers_pc(const struct user_regs_struct *regs);
uint64_t registers_sp(const struct user_regs_struct *regs);
uint64_t registers_fp(const struct user_regs_struct *regs);
/* The thread pointer (base of the TLS block). */
uint64_t registers_tp(const struct user_regs_struct *regs);
/* Is it in code of the width that ours has? */
bool registers_in_64_bit_code(const struct user_regs_struct *regs);
/* The system call that the thread was stopped in, -1 if none. */
int64_t registers_syscall(const struct user_regs_struct *regs);
/* Was it stopped while it slept in a system call that signals interrupt? */
bool registers_sleeping(const struct user_regs_struct *regs);
/* Is the thread at the entry of openat()? Then *name is the address of the path. */
bool registers_opens(const struct user_regs_struct *regs, uint64_t *name);
/* Makes another system call of the one at whose entry the thread is: fcntl(fd, F_DUPFD_CLOEXEC, 0). */
void registers_duplicate_instead(struct user_regs_struct *regs, int fd);
/* At its exit: the argument registers as they were before, with the result of now. */
void registers_give_back_arguments(struct user_regs_struct *regs, const struct user_regs_struct *before);
/* Calls visit with the value of every general register. */
void registers_each(const struct user_regs_struct *regs, void (*visit)(uint64_t value, void *data), void *data);
/* May two words that follow the program counter in the context of an interrupted thread (sigcontext) be first and
 * second? */
bool registers_follow_pc(uint64_t first, uint64_t second);

#endif
