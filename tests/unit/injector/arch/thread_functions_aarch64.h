/* SPDX-License-Identifier: MIT */
/* Functions for test_thread_variable.c. KNOWN: kind, address, offset that each of these ways returns; OTHERS: they
 * return something else. */
#pragma once

#define PAGE(code) ((uintptr_t)(code) & ~0xfffull)

FUNCTION(local_exec, "bti c\nmrs x0, tpidr_el0\nadd x0, x0, #1, lsl #12\nadd x0, x0, #24\nldr x0, [x0]\nret");
FUNCTION(with_frame, "paciasp\nstp x29, x30, [sp, #-32]!\nmov x29, sp\nstr x19, [sp, #16]\nmrs x3, tpidr_el0\n"
                     "ldr x0, [x3, #16]\nldr x19, [sp, #16]\nldp x29, x30, [sp], #32\nautiasp\nret");
FUNCTION(relaxed, "mrs x1, tpidr_el0\nmovz x0, #1, lsl #16\nmovk x0, #24\nnop\nnop\nldr x0, [x1, x0]\nret");
FUNCTION(relaxed_sum, "movz x0, #32\nmrs x1, tpidr_el0\nadd x0, x0, x1\nldr x0, [x0, #8]\nret");
FUNCTION(initial_exec, "adrp x0, 0x1000 + initial_exec\nldr x0, [x0, #16]\nmrs x1, tpidr_el0\nldr x0, [x1, x0]\nret");
FUNCTION(initial_exec_sum, "mrs x2, tpidr_el0\nadr x4, 0x1000 + initial_exec_sum\nldr x3, [x4]\nadd x3, x2, x3\n"
                           "mov x5, x3\nldr x0, [x5]\nret");
FUNCTION(dynamic, "stp x29, x30, [sp, #-16]!\nmrs x1, tpidr_el0\nmov x29, sp\nadrp x0, 0x1000 + dynamic\n"
                  "ldr x2, [x0, #32]\nadd x0, x0, #32\nblr x2\nadd x0, x0, #8\nldr x0, [x1, x0]\n"
                  "ldp x29, x30, [sp], #16\nret");

FUNCTION(with_condition, "mrs x0, tpidr_el0\nldr x0, [x0, #24]\ncbz x0, 1f\nret\n1: udf #0");
FUNCTION(of_an_argument, "mrs x1, tpidr_el0\nldr x0, [x1, x0]\nret");
FUNCTION(of_data, "adr x0, 0x1000 + of_data\nldr x0, [x0]\nret");
FUNCTION(address_alone, "mrs x0, tpidr_el0\nadd x0, x0, #24\nret");
FUNCTION(of_what_is_there, "mrs x0, tpidr_el0\nldr x0, [x0, #24]\nldr x0, [x0, #8]\nret");
FUNCTION(half_a_word, "mrs x0, tpidr_el0\nldr w0, [x0, #24]\nret");
FUNCTION(half_a_number, "mrs x1, tpidr_el0\nmovk x0, #24\nldr x0, [x1, x0]\nret");
FUNCTION(scaled, "mrs x1, tpidr_el0\nmovz x0, #3\nldr x0, [x1, x0, lsl #3]\nret");
FUNCTION(changed, "mrs x0, tpidr_el0\nldr x0, [x0, #24]\nand x0, x0, #0xfffffffffffffff8\nret");
FUNCTION(after_a_call, "mrs x0, tpidr_el0\nldr x0, [x0, #24]\nbl local_exec\nret");
FUNCTION(of_the_stack, "mrs x0, tpidr_el0\nldr x0, [x0, #24]\nldr x0, [sp]\nret");
FUNCTION(of_the_stack_by_two, "mrs x0, tpidr_el0\nldr x0, [x0, #24]\nldp x1, x0, [sp], #16\nret");
FUNCTION(of_another_descriptor, "adr x0, 0x1000 + of_another_descriptor\nldr x1, [x0]\nadd x0, x0, #16\nblr x1\n"
                                "mrs x1, tpidr_el0\nldr x0, [x1, x0]\nret");
FUNCTION(of_another_call, "adr x0, 0x1000 + of_another_call\nadd x0, x0, #16\nblr x1\nmrs x1, tpidr_el0\n"
                          "ldr x0, [x1, x0]\nret");
FUNCTION(stores, "mrs x1, tpidr_el0\nldr x0, [x1, #24]\nstr x2, [x1, #24]\nret");
FUNCTION(jumps, "mrs x0, tpidr_el0\nldr x0, [x0, #24]\nb local_exec");
FUNCTION(long_one, ".rept 100\nnop\n.endr\nmrs x0, tpidr_el0\nldr x0, [x0, #24]\nret");

#define KNOWN                                                                                                          \
	X(local_exec, THREAD_VARIABLE_OFFSET, 0, 4096 + 24)                                                            \
	X(with_frame, THREAD_VARIABLE_OFFSET, 0, 16)                                                                   \
	X(relaxed, THREAD_VARIABLE_OFFSET, 0, 65536 + 24)                                                              \
	X(relaxed_sum, THREAD_VARIABLE_OFFSET, 0, 40)                                                                  \
	X(initial_exec, THREAD_VARIABLE_WORD, PAGE(initial_exec) + 0x1010, 0)                                          \
	X(initial_exec_sum, THREAD_VARIABLE_WORD, (uintptr_t)initial_exec_sum + 0x1000, 0)                             \
	X(dynamic, THREAD_VARIABLE_DESCRIPTOR, PAGE(dynamic) + 0x1020, 8)
#define OTHERS                                                                                                         \
	with_condition, of_an_argument, of_data, address_alone, of_what_is_there, half_a_word, half_a_number, scaled,  \
		changed, after_a_call, of_the_stack, of_the_stack_by_two, of_another_descriptor, of_another_call,      \
		stores, jumps, long_one
#define SHORTEST 24 /* bytes of local_exec */
