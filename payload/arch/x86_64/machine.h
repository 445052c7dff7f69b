/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#define ARCH_SYS_FSTAT 5
#define ARCH_SYS_MMAP 9
#define ARCH_SYS_MPROTECT 10
#define ARCH_SYS_MUNMAP 11
#define ARCH_SYS_MREMAP 25
#define ARCH_SYS_MADVISE 28
#define ARCH_SYS_MUNLOCK 150

#define ARCH_STAT_BYTES 144
#define ARCH_STAT_SIZE_OFFSET 48

/* x86-64 psABI */
#define ARCH_UCONTEXT_FP 120
#define ARCH_UCONTEXT_SP 160
#define ARCH_UCONTEXT_PC 168
#define ARCH_UCONTEXT_LINK 0
#define ARCH_UCONTEXT_BYTES 296

#define ARCH_LINK_REGISTER 0
#define ARCH_RULE_SP UNWIND_SP
#define ARCH_RULE_FP UNWIND_FP
#define ARCH_RULE_FIELD_LEAST 0u
#define ARCH_RETURN_BELOW(fp_below) 8u

static inline uint64_t arch_code_address(uint64_t word)
{
	return word;
}

#define ARCH_ADDRESS_END 0x00007ffffffff000u
#define ARCH_CONTROL_BELOW 0
#define ARCH_TID(thread_pointer, distance) ((thread_pointer) + (distance))

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

/* glibc and musl keep the address of the thread control block in its first word. */
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

struct arch_float {
	uint32_t mxcsr;
};

static inline struct arch_float arch_float_enter(void)
{
	struct arch_float saved;
	const uint32_t standard = 0x1f80;

	__asm__ volatile("stmxcsr %0" : "=m"(saved.mxcsr) : : "memory");
	__asm__ volatile("ldmxcsr %0" : : "m"(standard) : "memory");
	return saved;
}

static inline void arch_float_leave(struct arch_float saved)
{
	__asm__ volatile("ldmxcsr %0" : : "m"(saved.mxcsr) : "memory");
}
