/* SPDX-License-Identifier: MIT */
/* What test_kept.c needs to know of x86-64. */
#pragma once

#define GENERAL 9u
#define RESULT general[RAX]
#define ARGUMENTS                                                                                                      \
	{                                                                                                              \
		RDI, RSI, RDX, RCX                                                                                     \
	}

enum { RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11 };
struct registers {
	uint64_t general[GENERAL];
	uint64_t vector[16][2];
};

#define GENERAL_(op, a)                                                                                                \
	op(rax, 0, a) op(rcx, 8, a) op(rdx, 16, a) op(rsi, 24, a) op(rdi, 32, a) op(r8, 40, a) op(r9, 48, a)           \
		op(r10, 56, a) op(r11, 64, a)
#define VECTORS_(op, a)                                                                                                \
	op(xmm0, 72, a) op(xmm1, 88, a) op(xmm2, 104, a) op(xmm3, 120, a) op(xmm4, 136, a) op(xmm5, 152, a)            \
		op(xmm6, 168, a) op(xmm7, 184, a) op(xmm8, 200, a) op(xmm9, 216, a) op(xmm10, 232, a)                  \
			op(xmm11, 248, a) op(xmm12, 264, a) op(xmm13, 280, a) op(xmm14, 296, a) op(xmm15, 312, a)
#define LOAD_BASE(r, at, base) "mov " #at "(%" #base "), %" #r "\n"
#define STORE_BASE(r, at, base) "mov %" #r ", " #at "(%" #base ")\n"
#define LOAD_VECTOR_BASE(r, at, base) "movups " #at "(%" #base "), %" #r "\n"
#define STORE_VECTOR_BASE(r, at, base) "movups %" #r ", " #at "(%" #base ")\n"
#define LOAD(r, at, name) "mov " #name "+" #at "(%rip), %" #r "\n"
#define STORE(r, at, name) "mov %" #r ", " #name "+" #at "(%rip)\n"
#define LOAD_VECTOR(r, at, name) "movups " #name "+" #at "(%rip), %" #r "\n"
#define STORE_VECTOR(r, at, name) "movups %" #r ", " #name "+" #at "(%rip)\n"

_Static_assert(TRAMPOLINE_KEPT_FIRST == -16 && TRAMPOLINE_KEPT_SECOND == -24, "as the code below has it");

/* clang-format off */
__asm__(".pushsection .text\n"
        "kept_call:\n"
        ".cfi_startproc\n"
        "push %rbx\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset rbx, 0\n"
        "push %r12\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset r12, 0\n"
        "push %r13\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset r13, 0\n"
        "mov %rdi, %rbx\n mov %rsi, %r12\n mov %rdx, %r13\n"
        VECTORS_(LOAD_VECTOR_BASE, rbx)
        GENERAL_(LOAD_BASE, rbx)
        "call 1f\n"
        GENERAL_(STORE_BASE, r12)
        VECTORS_(STORE_VECTOR_BASE, r12)
        "pop %r13\n .cfi_adjust_cfa_offset -8\n"
        "pop %r12\n .cfi_adjust_cfa_offset -8\n"
        "pop %rbx\n .cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n"
        "1:\n"
        ".cfi_startproc\n"
        "mov %rax, -16(%rsp)\n mov %r11, -24(%rsp)\n"
        "xor %eax, %eax\n mov %r13, %r11\n"
        "jmp *(%r11)\n"
        ".cfi_endproc\n"
        "kept_original:\n"
        ".cfi_startproc\n"
        "mov -24(%rsp), %r11\n mov -16(%rsp), %rax\n"
        GENERAL_(STORE, kept_found)
        VECTORS_(STORE_VECTOR, kept_found)
        GENERAL_(LOAD, kept_left)
        VECTORS_(LOAD_VECTOR, kept_left)
        "ret\n"
        ".cfi_endproc\n"
        ".popsection\n");
/* clang-format on */
