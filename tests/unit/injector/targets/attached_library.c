/* SPDX-License-Identifier: MIT */
/*
 * A library with a thread-local variable and functions that return it, as an interpreter has them. CONTRARY: they
 * return two variables. OUTSIDE: it is not one of the library. UNRELOCATED: one looks as if it did, by words that no
 * relocation has made.
 */
#include <stdint.h>

static __thread uint64_t other __attribute__((used)), variable __attribute__((used));

#ifdef CONTRARY
#define IN_BLOCK "other"
#else
#define IN_BLOCK "variable"
#endif

#define FUNCTION(name, body)                                                                                           \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" body "\n.size " #name              \
	        ", . - " #name "\n")

#ifdef __x86_64__
#if defined OUTSIDE
FUNCTION(_PyThreadState_UncheckedGet, "mov %fs:-0x8000, %rax\nret");
#elif defined UNRELOCATED
FUNCTION(_PyThreadState_UncheckedGet,
         "sub $8, %rsp\nlea words(%rip), %rdi\ncall 1f\nmov (%rax), %rax\nadd $8, %rsp\nret\n"
         "1: ret\n.data\n.balign 8\nwords: .quad 1, 0\n.text");
#else
FUNCTION(_PyThreadState_UncheckedGet, "sub $8, %rsp\nlea " IN_BLOCK "@tlsld(%rip), %rdi\ncall __tls_get_addr@PLT\n"
                                      "mov " IN_BLOCK "@dtpoff(%rax), %rax\nadd $8, %rsp\nret");
FUNCTION(_PyThreadState_GetCurrent, "endbr64\nmov variable@gottpoff(%rip), %rax\nmov %fs:(%rax), %rax\nret");
FUNCTION(PyThreadState_GetUnchecked, "push %rax\n.byte 0x66\nlea variable@tlsgd(%rip), %rdi\n.value 0x6666\nrex64\n"
                                     "call __tls_get_addr@PLT\nmov (%rax), %rax\npop %rcx\nret");
#endif
#else
#define DESCRIBED(name, of)                                                                                            \
	FUNCTION(name, "stp x29, x30, [sp, #-16]!\nmrs x1, tpidr_el0\nmov x29, sp\nadrp x0, :tlsdesc:" of              \
	               "\nldr x2, [x0, #:tlsdesc_lo12:" of "]\nadd x0, x0, #:tlsdesc_lo12:" of "\n.tlsdesccall " of    \
	               "\nblr x2\nldr x0, [x1, x0]\nldp x29, x30, [sp], #16\nret")
#if defined OUTSIDE
FUNCTION(_PyThreadState_UncheckedGet, "mrs x0, tpidr_el0\nadd x0, x0, #8, lsl #12\nldr x0, [x0]\nret");
#elif defined UNRELOCATED
FUNCTION(_PyThreadState_UncheckedGet,
         "stp x29, x30, [sp, #-16]!\nadrp x0, words\nldr x1, [x0, #:lo12:words]\nadd x0, x0, #:lo12:words\nblr x1\n"
         "mrs x1, tpidr_el0\nldr x0, [x1, x0]\nldp x29, x30, [sp], #16\nret\n"
         ".data\n.balign 16\nwords: .quad 1, 16\n.text");
#else
DESCRIBED(_PyThreadState_UncheckedGet, IN_BLOCK);
DESCRIBED(_PyThreadState_GetCurrent, "variable");
FUNCTION(PyThreadState_GetUnchecked, "bti c\nadrp x0, :gottprel:variable\nldr x0, [x0, #:gottprel_lo12:variable]\n"
                                     "mrs x1, tpidr_el0\nldr x0, [x1, x0]\nret");
#endif
#endif

uint64_t *attached_library_variable(void);
uint64_t *attached_library_variable(void)
{
	return &variable;
}
