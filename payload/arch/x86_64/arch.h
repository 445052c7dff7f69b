/* SPDX-License-Identifier: MIT */
/*
 * All that the payload's C code knows about x86-64: system calls, the thread pointer, the cycle counter, the
 * floating-point environment, and what an interrupted thread looks like on a signal frame. hooks.S and trampolines.S
 * hold the rest.
 */
#ifndef MEMATTACH_PAYLOAD_ARCH_H
#define MEMATTACH_PAYLOAD_ARCH_H

#include <stdint.h>

/* Linux system call numbers. */
#define ARCH_SYS_FSTAT 5
#define ARCH_SYS_MMAP 9
#define ARCH_SYS_MPROTECT 10
#define ARCH_SYS_MUNMAP 11
#define ARCH_SYS_MREMAP 25
#define ARCH_SYS_MADVISE 28
#define ARCH_SYS_MUNLOCK 150

/* Offset of st_size in the struct stat that the kernel fills, and the size of that struct. */
#define ARCH_STAT_BYTES 144
#define ARCH_STAT_SIZE_OFFSET 48

/* Registers of the interrupted code, from the ucontext of a signal frame (Linux, x86-64 psABI). */
#define ARCH_UCONTEXT_FP 120
#define ARCH_UCONTEXT_SP 160
#define ARCH_UCONTEXT_PC 168
#define ARCH_UCONTEXT_BYTES 296

static inline int64_t arch_syscall(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                   uint64_t f)
{
	int64_t result;
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return result;
}

/* The thread control block; glibc and musl keep its own address in its first word. */
static inline uint64_t arch_thread_pointer(void)
{
	uint64_t tp;

	__asm__ volatile("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

static inline uint64_t arch_cycles(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/*
 * The target may have unmasked floating-point exceptions, chosen another rounding, or be about to look at the sticky
 * flags. Arithmetic in double is between these two, in a function that is not inlined and works through memory, so
 * that the compiler cannot move it out.
 */
static inline uint32_t arch_float_enter(void)
{
	uint32_t saved;
	const uint32_t standard = 0x1f80;

	__asm__ volatile("stmxcsr %0" : "=m"(saved) : : "memory");
	__asm__ volatile("ldmxcsr %0" : : "m"(standard) : "memory");
	return saved;
}

static inline void arch_float_leave(uint32_t saved)
{
	__asm__ volatile("ldmxcsr %0" : : "m"(saved) : "memory");
}

#endif
