/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#define ARCH_SYS_FSTAT 80
#define ARCH_SYS_MMAP 222
#define ARCH_SYS_MPROTECT 226
#define ARCH_SYS_MUNMAP 215
#define ARCH_SYS_MREMAP 216
#define ARCH_SYS_MADVISE 233
#define ARCH_SYS_MUNLOCK 229

#define ARCH_STAT_BYTES 128
#define ARCH_STAT_SIZE_OFFSET 48

/* siginfo, and struct sigcontext of the kernel, 176 bytes into the ucontext: the fault's address, x0 to x30, sp, pc,
 * pstate. */
#define ARCH_UCONTEXT_REGISTERS (128 + 176 + 8)
#define ARCH_UCONTEXT_FP (ARCH_UCONTEXT_REGISTERS + 29 * 8)
#define ARCH_UCONTEXT_LINK (ARCH_UCONTEXT_REGISTERS + 30 * 8)
#define ARCH_UCONTEXT_SP (ARCH_UCONTEXT_REGISTERS + 31 * 8)
#define ARCH_UCONTEXT_PC (ARCH_UCONTEXT_REGISTERS + 32 * 8)
#define ARCH_UCONTEXT_BYTES (ARCH_UCONTEXT_REGISTERS + 34 * 8)

#define ARCH_LINK_REGISTER 1
#define ARCH_RULE_SP UNWIND_PAIR_SP
#define ARCH_RULE_FP UNWIND_PAIR_FP
#define ARCH_RULE_FIELD_LEAST 2u
#define ARCH_RETURN_BELOW(fp_below) ((fp_below)-8)

/* In the bits above the addresses that programs have: a signature (PAC). */
static inline uint64_t arch_code_address(uint64_t word)
{
	return word & 0x0000ffffffffffffull;
}

#define ARCH_ADDRESS_END 0x0000fffffffff000u
#define ARCH_CONTROL_BELOW 1
#define ARCH_TID(thread_pointer, distance) ((thread_pointer) - (distance))

static inline int64_t arch_syscall(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                   uint64_t f)
{
	register uint64_t x0 __asm__("x0") = a;
	register uint64_t x1 __asm__("x1") = b;
	register uint64_t x2 __asm__("x2") = c;
	register uint64_t x3 __asm__("x3") = d;
	register uint64_t x4 __asm__("x4") = e;
	register uint64_t x5 __asm__("x5") = f;
	register int64_t x8 __asm__("x8") = number;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x8) : "memory", "cc");
	return (int64_t)x0;
}

static inline uint64_t arch_thread_pointer(void)
{
	uint64_t tp;

	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(tp));
	return tp;
}

/* The generic timer. */
static inline uint64_t arch_cycles(void)
{
	uint64_t count;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
}

struct arch_float {
	uint64_t control, status;
};

static inline struct arch_float arch_float_enter(void)
{
	struct arch_float saved;

	__asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr\n\tmsr fpcr, xzr"
	                 : "=r"(saved.control), "=r"(saved.status)
	                 :
	                 : "memory");
	return saved;
}

static inline void arch_float_leave(struct arch_float saved)
{
	__asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(saved.control), "r"(saved.status) : "memory");
}
