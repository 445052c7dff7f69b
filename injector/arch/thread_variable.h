/* SPDX-License-Identifier: MIT */
/*
 * Where a word of each thread is that a function of a module returns, by the function's code alone: in thread-local
 * storage, which no symbol of a stripped module names. The code must be one straight line that does nothing else; what
 * it returns is followed from the first instruction to the last, and anything that is not known here ends that. So no
 * place is guessed: it is what the function itself would read.
 *
 * Compilers and linkers write such a function in these ways, here for x86-64:
 *
 *   mov %fs:OFFSET,%rax                              the program: local exec; or that put together from %fs:0
 *   mov WORD(%rip),%rax; mov %fs:(%rax),%rax         initial exec; WORD is relocated by R_X86_64_TPOFF64
 *   lea INDEX(%rip),%rdi; call …; mov N(%rax),%rax   general and local dynamic; INDEX by R_X86_64_DTPMOD64
 *
 * The last one calls __tls_get_addr, which gives the place of a module's block in the thread: at the same distance from
 * each thread pointer only if the module has static storage, as all have that were there when the program started.
 *
 * On aarch64 the first two are the same with mrs TP,tpidr_el0 and a sum, and dynamic code uses a descriptor:
 *
 *   adrp x0; ldr x1,[x0,LOW]; add x0,LOW; blr x1; ldr x0,[TP,x0]     two words by R_AARCH64_TLSDESC
 *
 * The function in its first word returns the distance from the thread pointer; of a module with static storage it is
 * the second word. On x86-64 descriptors (R_X86_64_TLSDESC) are not followed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum thread_variable_kind {
	THREAD_VARIABLE_OFFSET,     /* at the thread pointer + offset */
	THREAD_VARIABLE_WORD,       /* at the thread pointer + the word at address + offset */
	THREAD_VARIABLE_INDEX,      /* struct tls_index { module, offset } is at address; in the module's block at both
	                               offsets */
	THREAD_VARIABLE_DESCRIPTOR, /* at the thread pointer + what the descriptor at address says + offset */
};

struct thread_variable {
	enum thread_variable_kind kind;
	uint64_t address;
	int64_t offset;
};

/* code: of the function, which is at address; more may follow. False: it is not known to return such a word. */
bool thread_variable_read(struct thread_variable *v, const uint8_t *code, size_t bytes, uint64_t address);
