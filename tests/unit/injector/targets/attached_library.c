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

uint64_t *attached_library_variable(void);
uint64_t *attached_library_variable(void)
{
	return &variable;
}
