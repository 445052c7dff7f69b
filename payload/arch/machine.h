/* SPDX-License-Identifier: MIT */
/*
 * All that the payload's C code knows about the machine. hooks.S and trampolines.S beside the machine's header hold the
 * rest.
 *
 *   ARCH_SYS_*            Linux system call numbers
 *   ARCH_STAT_BYTES, ARCH_STAT_SIZE_OFFSET
 *                         size of the struct stat that the kernel fills, and where st_size is in it
 *   ARCH_UCONTEXT_*       where the registers of interrupted code are, from the stack pointer on with which its handler
 *                         has returned; LINK: the one with the return address, if there is such a register
 *   ARCH_LINK_REGISTER    1: calls leave the return address in a register, and rules say where it is saved
 *   ARCH_RULE_SP, ARCH_RULE_FP, ARCH_RULE_FIELD_LEAST
 *                         the two kinds of rules that nearly all code has, and the least field with which they tell a
 *                         return address
 *   ARCH_RETURN_BELOW()   how far below the CFA the return address is, by such a rule, where the frame pointer is saved
 *                         that far below
 *   arch_code_address()   the address of code that a word holds, which may be signed
 *   ARCH_ADDRESS_END      where the addresses of programs end, unless they ask for higher ones
 *   ARCH_CONTROL_BELOW    1: the C library's description of a thread ends at the thread pointer; 0: it begins there
 *   ARCH_TID()            where the thread's number is, so far from the thread pointer
 *   arch_syscall()        makes a system call of up to six arguments; what it returns, -errno on failure. No errno
 *   arch_thread_pointer() the thread pointer: differs from that of each other thread that lives
 *   arch_cycles()         a counter that all processors share and that runs at one speed, as the clock of samples
 *   arch_float_enter(), arch_float_leave()
 *                         struct arch_float is what the first returns. The target may have unmasked floating-point
 * exceptions, chosen another rounding, or be about to look at the sticky flags. Arithmetic in double is between these
 * two, in a function that is not inlined and works through memory, so that the compiler cannot move it out
 */
#pragma once

#if defined(__x86_64__)
#include "arch/x86_64/machine.h"
#elif defined(__aarch64__)
#include "arch/aarch64/machine.h"
#else
#error "memattach has no payload for this architecture yet"
#endif
