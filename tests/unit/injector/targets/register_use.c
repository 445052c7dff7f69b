/* SPDX-License-Identifier: MIT */
/*
 * Functions that a caller could rely on for its registers (no_...), and others (allocator_registers.c): yes_... calls a
 * function of another module, always_... also shows it in a static program. In assembler, because compilers choose as
 * they like. After "ready" the program waits for the end of its input.
 */
#include <stdio.h>
#include <unistd.h>

#define FUNCTION(name, ...) FUNCTION_(".p2align 4, 0xcc\n", name, __VA_ARGS__)
#define FUNCTION_AT_ONCE(name, ...) FUNCTION_("", name, __VA_ARGS__)
#define FUNCTION_(align, name, ...)                                                                                    \
	__asm__(".text\n" align ".globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n" __VA_ARGS__  \
	        "\n.cfi_endproc\n.size " name ", . - " name "\n")
#define WORK "mov %rdi, %rax\n lea 1(%rax), %rdx\n mov %rdx, %rax\n"

extern void *pointer, *table[], *state;
void *pointer = (void *)getpid, *table[] = { (void *)getpid };

FUNCTION("no_leaf", WORK "ret");
FUNCTION("no_leaf_below", WORK "call no_leaf\n ret");
FUNCTION("no_itself", WORK "test %rdi, %rdi\n je 1f\n call no_itself\n 1: ret");
/* The address of a function that the compiler knows may be in a register, or kept on the stack. */
FUNCTION("no_register", WORK "lea no_leaf(%rip), %rax\n call *%rax\n ret");
FUNCTION("no_large_model", WORK "movabs $no_leaf - ., %r11\n call *%r11\n ret");
FUNCTION("no_stack", WORK "call *8(%rsp)\n ret");
FUNCTION("no_descriptor", WORK "lea pointer(%rip), %rax\n call *(%rax)\n ret");
FUNCTION("no_retpoline", WORK "call thunk\n ret");
FUNCTION("thunk", "call 1f\n 2: pause\n lfence\n jmp 2b\n 1: mov %rax, (%rsp)\n ret");
FUNCTION("no_return_thunk", WORK "jmp return_thunk");
FUNCTION("return_thunk", "ret\n int3");
FUNCTION("no_switch", WORK "lea pointer(%rip), %rdx\n jmp *%rdx");
FUNCTION("no_system_call", "mov $39, %eax\n syscall\n ret");
/* Behind a call that does not return stands the next function, which the one above does not use. */
FUNCTION("no_noreturn", WORK "call ends");
FUNCTION_AT_ONCE("always_pointer", WORK "call *pointer(%rip)\n ret");
FUNCTION("ends", "ud2");
/* A state machine. */
FUNCTION("no_state_below", WORK "call no_state\n ret");
FUNCTION("no_state", "jmp *state(%rip)\n .globl state_here\n state_here: ret");
FUNCTION("no_saves_all", "push %rcx\n push %rdx\n push %rsi\n call getpid@plt\n pop %rsi\n pop %rdx\n pop %rcx\n ret");

FUNCTION("yes_stub", WORK "call getpid@plt\n ret");
FUNCTION("yes_got", WORK "call *getpid@GOTPCREL(%rip)\n ret");
FUNCTION("yes_tail", WORK "jmp getpid@plt");
FUNCTION("yes_condition", WORK "test %rdi, %rdi\n je getpid@plt\n ret");
FUNCTION("always_table", WORK "lea table(%rip), %rdx\n call *(%rdx, %rdi, 8)\n ret");
FUNCTION("always_slot", WORK "call *16(%rdi)\n ret");
FUNCTION("yes_below", WORK "call no_leaf\n call yes_stub_below\n ret");
FUNCTION("yes_stub_below", WORK "call yes_stub\n ret");
FUNCTION("yes_ibt", "endbr64\n test %rdi, %rdi\n jne 1f\n ret\n 1: call yes_stub\n ret");
FUNCTION("always_below", WORK "call no_leaf\n call always_below_it\n ret");
FUNCTION("always_below_it", WORK "call always_slot\n ret");
/* What seldom runs is elsewhere, and is jumped into. */
FUNCTION("yes_cold", WORK "test %rdi, %rdi\n je cold_here\n ret");
FUNCTION("some_cold_part", "ud2\n cold_here: call getpid@plt\n ud2");

extern char state_here[];
void *state = state_here;

int main(void)
{
	char c;

	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
