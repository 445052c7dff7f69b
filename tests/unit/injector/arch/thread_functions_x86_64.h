/* SPDX-License-Identifier: MIT */
/* Functions for test_thread_variable.c. KNOWN: kind, address, offset that each of these ways returns; OTHERS: they
 * return something else. */
#pragma once

FUNCTION(local_exec, "endbr64\nmov %fs:-24, %rax\nret");
FUNCTION(with_frame, "endbr64\npush %rbp\nmov %rsp, %rbp\nmov %fs:-8, %rax\npop %rbp\nret");
FUNCTION(from_start, "mov %fs:0, %rax\nmov -24(%rax), %rax\nret");
FUNCTION(from_start_by_lea, "mov %fs:0, %rax\nlea -32(%rax), %rax\nmov 8(%rax), %rax\nret");
FUNCTION(relaxed, "mov $-24, %rax\nmov %fs:(%rax), %rax\nret");
FUNCTION(initial_exec, "mov 0x1000 + initial_exec(%rip), %rax\nmov %fs:(%rax), %rax\nret");
FUNCTION(initial_exec_sum, "mov %fs:0, %rax\nadd 0x1000 + initial_exec_sum(%rip), %rax\nmov (%rax), %rax\nret");
FUNCTION(dynamic, "sub $8, %rsp\n.byte 0x66\nlea 0x1000 + dynamic(%rip), %rdi\ncall local_exec\nmov 16(%rax), %rax\n"
                  "add $8, %rsp\nret");
FUNCTION(dynamic_pushed, "push %rax\nlea 0x1000 + dynamic_pushed(%rip), %rdi\ncall local_exec\nmov (%rax), %rax\n"
                         "pop %rcx\nret");

FUNCTION(far_away, "movabs $0x7fffffffffffffff, %rax\nlea 0x7fffffff(%rax), %rax\nmov %fs:(%rax), %rax\nret");

FUNCTION(with_condition, "mov %fs:-24, %rax\ntest %rax, %rax\nje 1f\nret\n1: ud2");
FUNCTION(of_an_argument, "mov %fs:(%rdi), %rax\nret");
FUNCTION(of_data, "mov 0x1000 + of_data(%rip), %rax\nret");
FUNCTION(address_alone, "mov %fs:0, %rax\nlea -24(%rax), %rax\nret");
FUNCTION(of_what_is_there, "mov %fs:-24, %rax\nmov 8(%rax), %rax\nret");
FUNCTION(half_a_word, "mov %fs:-24, %eax\nret");
FUNCTION(indexed, "mov $-24, %rax\nmov %fs:(%rax, %rdi), %rax\nret");
FUNCTION(changed, "mov %fs:-24, %rax\nand $-8, %rax\nret");
FUNCTION(after_a_call, "mov %fs:-24, %rax\ncall local_exec\nret");
FUNCTION(popped, "mov %fs:-24, %rax\npush %rdi\npop %rax\nret");
FUNCTION(popped_argument, "lea 0x1000 + popped_argument(%rip), %rdi\npush %rsi\npop %rdi\ncall local_exec\n"
                          "mov (%rax), %rax\nret");
FUNCTION(popped_half, "mov %fs:-24, %rax\npush %rdi\npopw %ax\nret");
FUNCTION(of_another_call, "mov $5, %rdi\ncall local_exec\nmov (%rax), %rax\nret");
FUNCTION(stores, "mov %fs:-24, %rax\nmov %rdi, %fs:-24\nret");
FUNCTION(jumps, "mov %fs:-24, %rax\njmp local_exec");
FUNCTION(long_one, ".rept 100\nnop\n.endr\nmov %fs:-24, %rax\nret");

#define KNOWN                                                                                                          \
	X(local_exec, THREAD_VARIABLE_OFFSET, 0, -24)                                                                  \
	X(with_frame, THREAD_VARIABLE_OFFSET, 0, -8)                                                                   \
	X(from_start, THREAD_VARIABLE_OFFSET, 0, -24)                                                                  \
	X(from_start_by_lea, THREAD_VARIABLE_OFFSET, 0, -24)                                                           \
	X(relaxed, THREAD_VARIABLE_OFFSET, 0, -24)                                                                     \
	X(far_away, THREAD_VARIABLE_OFFSET, 0, INT64_MIN + 0x7ffffffe)                                                 \
	X(initial_exec, THREAD_VARIABLE_WORD, (uintptr_t)initial_exec + 0x1000, 0)                                     \
	X(initial_exec_sum, THREAD_VARIABLE_WORD, (uintptr_t)initial_exec_sum + 0x1000, 0)                             \
	X(dynamic, THREAD_VARIABLE_INDEX, (uintptr_t)dynamic + 0x1000, 16)                                             \
	X(dynamic_pushed, THREAD_VARIABLE_INDEX, (uintptr_t)dynamic_pushed + 0x1000, 0)
#define OTHERS                                                                                                         \
	with_condition, of_an_argument, of_data, address_alone, of_what_is_there, half_a_word, indexed, changed,       \
		after_a_call, popped, stores, of_another_call, jumps, long_one, popped_argument, popped_half
#define SHORTEST 14 /* bytes of local_exec */
